import { join } from 'node:path';
import type { StorageClient } from '../bunny/storage-client.ts';
import { assetPath } from '../domain/resolve.ts';
import { copyHashed } from './assets.ts';
import type { AssetAnswer, AssetKind } from './contract.ts';
import { withJobDir } from './job-dir.ts';
import type { Tools } from './tools.ts';
import { validateAsset } from './validate.ts';

export interface IntakeDeps {
  tools: Tools;
  storage: Pick<StorageClient, 'put' | 'stat'>;
  workDir: string;
  maxBytes: number;
}

/** Whose assets a tier's are: `platform`, or `org:{id}`. */
const ownerOf = (tier: string) =>
  tier === 'platform' ? { tier: 'platform' as const } : { tier: 'org' as const, orgId: tier.slice('org:'.length) };

/**
 * Takes in an uploaded file: spooled to disk and hashed on the way (its name in the zone is its hash, and the zone cannot
 * rename), looked at, and, where it can be used, stored, unless the zone has it already. Throws `source_too_large`,
 * `aborted`, or what the storage client throws.
 */
export function takeIn(
  deps: IntakeDeps,
  body: AsyncIterable<Uint8Array>,
  what: { tier: string; kind: AssetKind },
  signal: AbortSignal,
): Promise<AssetAnswer> {
  return withJobDir(deps.workDir, async (jobDir) => {
    const file = join(jobDir, 'upload');
    const { sha256, bytes } = await copyHashed(body, file, { maxBytes: deps.maxBytes, signal });
    const report = await validateAsset(deps.tools, file, what.kind, signal);
    if (report.errors.length > 0) return { sha256, bytes, location: null, report };
    const path = assetPath(ownerOf(what.tier), sha256);
    const known = await deps.storage.stat(path, { signal });
    if (known?.bytes !== bytes) await deps.storage.put(path, file, { sha256, signal });
    return { sha256, bytes, location: `zone:${path}`, report };
  });
}
