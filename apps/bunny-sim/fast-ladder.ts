import { link, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from './disk.ts';
import { type Examine, type MadeRung, type MakeOptions, masterPlaylist, planRungs, variantLines } from './ladder.ts';
import { type Mp4Header, readMp4Header } from './mp4-header.ts';

/** One MPEG-TS null packet (ISO/IEC 13818-1: PID 0x1FFF): a segment by form, with nothing in it. */
const NULL_PACKET = Buffer.concat([Buffer.from([0x47, 0x1f, 0xff, 0x10]), Buffer.alloc(184, 0xff)]);

/**
 * Starts no process, for runs with thousands of videos: the facts come from the MP4's header, the progressive MP4 is the
 * original itself, and the HLS playlists are right in form and length but their segments are empty.
 */
export const examineHeader: Examine = async (file) => {
  const header = await readMp4Header(file);
  if (!header || header.width === 0 || header.height === 0) return undefined;
  const { durationSeconds, width, height } = header;
  const make = (options: MakeOptions) => makeTokenLadder(file, header, options);
  return { durationSeconds, width, height, rotation: 0, framerate: 0, make };
};

async function* makeTokenLadder(
  file: string,
  { durationSeconds, width, height, complete }: Mp4Header,
  { target, limitSeconds }: MakeOptions,
): AsyncGenerator<MadeRung> {
  const [rung] = planRungs({ displayWidth: width, displayHeight: height }, true).slice(-1);
  if (!rung) return;
  const seconds = limitSeconds ?? durationSeconds;
  await mkdir(join(target, rung.name), { recursive: true });
  await link(file, join(target, `play_${rung.name}.mp4`));
  const segment = `#EXTINF:${seconds.toFixed(6)},\nvideo0.ts\n`;
  const head = `#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:${Math.ceil(seconds)}\n#EXT-X-PLAYLIST-TYPE:VOD\n`;
  writeWhole(join(target, rung.name, 'video.m3u8'), `${head}${segment}#EXT-X-ENDLIST\n`);
  writeWhole(join(target, rung.name, 'video0.ts'), NULL_PACKET);
  writeWhole(join(target, 'playlist.m3u8'), masterPlaylist([variantLines(rung, 1)]));
  yield { name: rung.name, seconds, complaint: complete ? '' : 'partial file' };
}
