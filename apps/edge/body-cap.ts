import { AppError } from '../../lib/errors.ts';

export interface CappedBody {
  body: AsyncIterable<Uint8Array>;
  /** Throws `payload_too_large` where the cap was what ended the body; whoever read it may have seen another error. */
  assertWithin(): void;
}

/** Passes a body through chunk by chunk and breaks it off after `maxBytes`, whatever its Content-Length claimed. */
export function capBody(source: AsyncIterable<Uint8Array>, maxBytes: number): CappedBody {
  let seen = 0;
  const assertWithin = () => {
    if (seen <= maxBytes) return;
    throw new AppError('payload_too_large', { sentence: `The file is larger than ${maxBytes} bytes.` });
  };
  async function* pass() {
    for await (const chunk of source) {
      seen += chunk.byteLength;
      assertWithin();
      yield chunk;
    }
  }
  return { body: pass(), assertWithin };
}
