import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { PROJECT_ROOT } from '../project-root.ts';

const SetupFile = z.object({ redisUrl: z.string() });

/**
 * The Redis that scripts/setup.mjs started in Docker, where no Redis could be installed; undefined where there is one
 * on PATH. For use where REDIS_URL is not set.
 */
export async function redisFromSetup(
  file: string | URL = new URL('.bakehouse/services.json', PROJECT_ROOT),
): Promise<string | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : SetupFile.parse(JSON.parse(text)).redisUrl;
}
