import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const hex = z.string().regex(/^[0-9a-f]{48,}$/);

const secretsSchema = z.object({
  jwtSecret: hex,
  mediaToken: hex,
  opsPassword: hex,
  streamKey: hex,
  readOnlyKey: hex,
  storageKey: hex,
  storageReadKey: hex,
  webhookToken: hex,
  /** The clinic that the development tokens belong to. */
  orgId: z.uuid(),
});

/** What this data folder's installation authenticates with: made at random once, readable by its owner only. */
export type StackSecrets = z.infer<typeof secretsSchema>;

const random = () => randomBytes(32).toString('hex');

/** The secrets of the data folder, or null where it has none yet. */
export async function readSecrets(dataDir: string): Promise<StackSecrets | null> {
  const text = await readFile(join(dataDir, 'secrets.json'), 'utf8').catch(() => null);
  return text === null ? null : secretsSchema.parse(JSON.parse(text));
}

export async function ensureSecrets(dataDir: string): Promise<StackSecrets> {
  const kept = await readSecrets(dataDir);
  if (kept) return kept;
  const made: StackSecrets = {
    jwtSecret: random(),
    mediaToken: random(),
    opsPassword: random(),
    streamKey: random(),
    readOnlyKey: random(),
    storageKey: random(),
    storageReadKey: random(),
    webhookToken: random(),
    orgId: randomUUID(),
  };
  await mkdir(dataDir, { recursive: true });
  const temporary = join(dataDir, `secrets.${process.pid}.tmp`);
  await writeFile(temporary, `${JSON.stringify(made, null, 2)}\n`, { mode: 0o600 });
  await rename(temporary, join(dataDir, 'secrets.json'));
  return made;
}
