import { AppError } from '../errors.ts';

/** The longest line either side sends is some kilobytes. */
const MAX_LINE_CHARS = 1024 * 1024;

/** Splits a byte stream into its lines; a last one without its newline counts, since what it says decides. */
export async function* ndjsonLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder();
  let carry = '';
  for await (const chunk of source) {
    carry += decoder.decode(chunk, { stream: true });
    if (carry.length > MAX_LINE_CHARS) throw new AppError('media_protocol', { detail: 'a line has no end' });
    const lines = carry.split('\n');
    carry = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield parse(line);
  }
  if (carry.trim() !== '') yield parse(carry);
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new AppError('media_protocol', { detail: `not JSON: ${line.slice(0, 200)}`, cause: error });
  }
}
