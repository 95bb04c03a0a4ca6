import { msOfFrame, type Timeline } from '../domain/timeline.ts';

/** How long a caption stays when nothing follows. */
const LONGEST_MS = 3000;

/**
 * The cues as WebVTT (https://www.w3.org/TR/webvtt1/), in the words of the recipe's language; undefined where there are
 * none. Cues of one moment share a caption, and a caption ends when the next begins.
 */
export function captions(timeline: Timeline): string | undefined {
  if (timeline.cues.length === 0) return undefined;
  const moments = new Map<number, string[]>();
  for (const { frame, text } of timeline.cues) moments.set(frame, [...(moments.get(frame) ?? []), text]);
  const frames = [...moments.keys()].sort((a, b) => a - b);
  const blocks = frames.map((frame, index) => {
    const start = msOfFrame(frame);
    const next = msOfFrame(frames[index + 1] ?? timeline.frames);
    const text = (moments.get(frame) ?? []).map(escapeText).join('\n');
    return `${timestamp(start)} --> ${timestamp(Math.min(next, start + LONGEST_MS))}\n${text}\n`;
  });
  return `WEBVTT\n\n${blocks.join('\n')}`;
}

function timestamp(ms: number): string {
  const pad = (value: number, length = 2) => String(Math.floor(value)).padStart(length, '0');
  return `${pad(ms / 3_600_000)}:${pad((ms / 60_000) % 60)}:${pad((ms / 1000) % 60)}.${pad(ms % 1000, 3)}`;
}

const escapeText = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
