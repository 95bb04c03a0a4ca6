import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import type { CliConfig } from '../../../lib/config/cli.ts';
import { type PipelineConfig, pipelineSchema } from '../../../lib/config/pipeline.ts';
import type { FleetOptions } from '../../../lib/media/fleet.ts';
import { livingProcess, recordOf } from '../../../lib/services/process-record.ts';
import { Refusal } from '../failure.ts';

/** The installation that an operator's command works on. */
export interface Installation {
  databaseUrl: string;
  /** Null where the environment does not say: a command that only looks at the queue can do without. */
  redis: { url: string; prefix: string } | null;
  /** Null where the environment does not say; `requireMedia` has the sentence for that. */
  media: Pick<FleetOptions, 'targets' | 'token'> | null;
  /** What the workers there go by, as far as this process can know. */
  pipeline: PipelineConfig;
}

const FILE = 'stack.json';

/** Beside what says which process it is about: see `livingProcess`. */
const runningSchema = z.object({
  databaseUrl: z.string(),
  redis: z.object({ url: z.string(), prefix: z.string() }),
  media: z.object({ targets: z.array(z.string()), token: z.string() }),
  pipeline: pipelineSchema,
});
type Running = z.infer<typeof runningSchema>;

/** Tells the commands in other terminals where everything is. Readable by its owner only: it holds credentials. */
export async function announceRunning(dataDir: string, running: Running): Promise<void> {
  const temporary = join(dataDir, `${FILE}.${process.pid}.tmp`);
  const text = JSON.stringify({ ...(await recordOf(process.pid)), ...running });
  await writeFile(temporary, `${text}\n`, { mode: 0o600 });
  await rename(temporary, join(dataDir, FILE));
}

export const withdrawRunning = (dataDir: string) => rm(join(dataDir, FILE), { force: true });

/**
 * The installation that the environment names, or else the one that runs on the data folder. `up` itself takes the
 * database of DATABASE_URL wherever that is set, so both always mean the same one; what the environment leaves out is
 * taken from a running one on that very database, never from another. Throws, saying what mends it, where there is none.
 */
export async function findInstallation(config: CliConfig, dataDir?: string): Promise<Installation> {
  const folder = resolve(dataDir ?? config.BAKEHOUSE_DATA_DIR);
  const running = await readRunning(folder);
  const { DATABASE_URL, REDIS_URL, REDIS_PREFIX, MEDIA_URL, MEDIA_TOKEN } = config;
  if (DATABASE_URL === undefined) {
    if (running === 'none' || running === 'dead') throw new Refusal('no_installation', explain(folder, running));
    return running;
  }
  const same = typeof running === 'object' && running.databaseUrl === DATABASE_URL ? running : null;
  return {
    databaseUrl: DATABASE_URL,
    redis: REDIS_URL ? { url: REDIS_URL, prefix: REDIS_PREFIX } : (same?.redis ?? null),
    media: MEDIA_URL && MEDIA_TOKEN ? { targets: MEDIA_URL, token: MEDIA_TOKEN } : (same?.media ?? null),
    pipeline: same?.pipeline ?? pipelineSchema.parse(config),
  };
}

/** The media services of the installation, for commands that ask Bunny through them: what `createFleet` takes. */
export function requireMedia({ media }: Installation): NonNullable<Installation['media']> {
  if (media) return media;
  throw new Refusal(
    'configuration',
    'MEDIA_URL and MEDIA_TOKEN are not set: the media service, which asks Bunny for us.',
  );
}

async function readRunning(folder: string): Promise<Running | 'none' | 'dead'> {
  const file = join(folder, FILE);
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  });
  if (text === null) return 'none';
  return (await livingProcess(file)) ? runningSchema.parse(JSON.parse(text)) : 'dead';
}

const explain = (folder: string, why: 'none' | 'dead') =>
  `${why === 'dead' ? `The bakehouse that ran on ${folder} has died.` : `No bakehouse runs on ${folder}.`} Start it with \`bakehouse up\`, name its folder with --data-dir, or set DATABASE_URL.`;
