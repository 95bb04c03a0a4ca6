import type { VideoFacts } from '../ffmpeg/probe.ts';

/** One way to encode a picture; everything here decides bytes, so everything here is part of a segment's key. */
export interface Profile {
  name: '1080p' | '720p' | '480p';
  width: number;
  height: number;
  /** H.264 level for 30 frames a second at this size (ITU-T H.264 table A-1). */
  level: string;
  /** Peak rate and buffer, in kbit/s. */
  maxRate: number;
}

const SIZES = {
  '1080p': { long: 1920, short: 1080, level: '4.0', maxRate: 10_000 },
  '720p': { long: 1280, short: 720, level: '3.1', maxRate: 5_000 },
  '480p': { long: 854, short: 480, level: '3.1', maxRate: 2_500 },
} as const;

export interface Rungs {
  /** What the master is made of. */
  master: Profile;
  /** Progressive files for players without HLS; where one is the master's own profile, it is the master's own file. */
  baselines: Profile[];
}

/** Chooses the canvas by the source: 720p where its short side has no more to give, else 1080p; upright stays upright. */
export function rungsFor(video: Pick<VideoFacts, 'displayWidth' | 'displayHeight'>): Rungs {
  const upright = video.displayHeight > video.displayWidth;
  const small = Math.min(video.displayWidth, video.displayHeight) <= 720;
  const profile = (name: Profile['name']): Profile => {
    const { long, short, level, maxRate } = SIZES[name];
    return { name, width: upright ? short : long, height: upright ? long : short, level, maxRate };
  };
  return { master: profile(small ? '720p' : '1080p'), baselines: [profile('480p'), profile('720p')] };
}

/** Each distinct profile once. */
export function profilesOf(rungs: Rungs): Profile[] {
  return [...new Map([rungs.master, ...rungs.baselines].map((profile) => [profile.name, profile])).values()];
}

/** The size of the picture inside a canvas: as large as fits, shape kept, even for 4:2:0. */
export function fitInto(
  video: Pick<VideoFacts, 'displayWidth' | 'displayHeight'>,
  canvas: Pick<Profile, 'width' | 'height'>,
): { width: number; height: number } {
  const scale = Math.min(canvas.width / video.displayWidth, canvas.height / video.displayHeight);
  const even = (value: number) => Math.max(2, Math.round(value / 2) * 2);
  return { width: even(video.displayWidth * scale), height: even(video.displayHeight * scale) };
}
