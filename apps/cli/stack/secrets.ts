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
  webhookSigningKey: hex,
  /** The clinic that the development tokens belong to. */
  orgId: z.uuid(),
});

/** What this data folder's installation authenticates with: made at random once, readable by its owner only. */
export type StackSecrets = z.infer<typeof secretsSchema>;

const keptSchema = secretsSchema.partial();

const random = () => randomBytes(32).toString('hex');

/** The secrets of the data folder: null where it has none yet, fewer where an older version has made them. */
export async function readSecrets(dataDir: string): Promise<z.infer<typeof keptSchema> | null> {
  const text = await readFile(join(dataDir, 'secrets.json'), 'utf8').catch(() => null);
  return text === null ? null : keptSchema.parse(JSON.parse(text));
}

/** All of them; what is not there is made at random. */
export async function ensureSecrets(dataDir: string): Promise<StackSecrets> {
  const kept = await readSecrets(dataDir);
  const secrets = secretsSchema.parse({
    jwtSecret: random(),
    mediaToken: random(),
    opsPassword: random(),
    streamKey: random(),
    readOnlyKey: random(),
    storageKey: random(),
    storageReadKey: random(),
    webhookToken: random(),
    webhookSigningKey: random(),
    orgId: randomUUID(),
    ...kept,
  });
  if (kept && Object.keys(secrets).every((name) => Object.hasOwn(kept, name))) return secrets;
  await mkdir(dataDir, { recursive: true });
  const temporary = join(dataDir, `secrets.${process.pid}.tmp`);
  await writeFile(temporary, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
  await rename(temporary, join(dataDir, 'secrets.json'));
  return secrets;
}
