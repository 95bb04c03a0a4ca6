import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { inject } from 'vitest';

/** A new empty folder; removed at the end of the run at the latest. */
export async function makeTempDir(): Promise<string> {
  return mkdtemp(join(inject('runDir'), 'tmp-'));
}
