import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { processBirth } from './process-birth.ts';

const ProcessRecord = z.object({ pid: z.int().positive(), birth: z.string() });
export type ProcessRecord = z.infer<typeof ProcessRecord>;

/** What a lock or a record file of ours says about the process `pid`; `undefined` where that has already ended. */
export async function recordOf(pid: number): Promise<ProcessRecord | undefined> {
  const birth = await processBirth(pid);
  return birth === undefined ? undefined : { pid, birth };
}

/** The process a record file names, where that very process still runs. An unreadable record names nobody. */
export async function livingProcess(file: string): Promise<ProcessRecord | undefined> {
  const record = parseRecord(await readFile(file, 'utf8').catch(() => ''));
  return record && (await processBirth(record.pid)) === record.birth ? record : undefined;
}

function parseRecord(text: string): ProcessRecord | undefined {
  try {
    return ProcessRecord.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
