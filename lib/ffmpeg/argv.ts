import { isAbsolute } from 'node:path';

/**
 * Demuxers that open exactly the file they are given, by the names ffmpeg 5 to 8 use. What is missing is missing on
 * purpose: hls, concat, dash, sdp, image2, imf and their like read further files or hosts, and a playlist named .mp4 is
 * recognised by its content, whatever `-protocol_whitelist` says.
 */
export const UPLOAD_FORMATS = [
  ...['mov', 'matroska', 'webm', 'mpegts', 'mpeg', 'avi', 'flv', 'asf', 'mxf', 'ogg', 'gif', 'dv'],
  ...['wav', 'w64', 'mp3', 'aac', 'flac', 'aiff', 'amr', 'caf', 'ac3', 'eac3', 'au'],
] as const;

/** Containers of files this program wrote itself. */
export const OWN_FORMATS = ['mov', 'wav'] as const;

/**
 * A file as ffmpeg may name it: `file:` and absolute, because a bare name can hold a protocol (`concat:a.wav`), and a
 * relative one a dash.
 */
export function fileUrl(path: string): string {
  if (!isAbsolute(path) || path.includes('\0')) throw new Error('ffmpeg is given absolute paths only');
  return `file:${path}`;
}

/** What must stand before every `-i`, for ffprobe too; flags bind by position. */
export function inputArgs(path: string, formats: readonly string[] = UPLOAD_FORMATS): string[] {
  return ['-protocol_whitelist', 'file', '-format_whitelist', formats.join(','), '-i', fileUrl(path)];
}

/** Reads a concat list this program wrote; the list may name files of `OWN_FORMATS` only. */
export function concatInputArgs(listPath: string): string[] {
  return [
    ...['-protocol_whitelist', 'file', '-format_whitelist', ['concat', ...OWN_FORMATS].join(',')],
    ...['-f', 'concat', '-safe', '0', '-i', fileUrl(listPath)],
  ];
}

/** One line of a concat list; a quote in a path is closed, escaped and opened again, as the concat demuxer wants it. */
export const concatLine = (path: string): string => `file '${fileUrl(path).replaceAll("'", "'\\''")}'\n`;

/** Nothing that differs from run to run may reach an output: no encoder versions, no random ids, no copied tags. */
export const BITEXACT_ARGS: readonly string[] = [
  ...['-fflags', '+bitexact', '-flags:v', '+bitexact', '-flags:a', '+bitexact'],
  ...['-map_metadata', '-1', '-map_chapters', '-1'],
];
