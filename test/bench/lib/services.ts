import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeServiceData, type Services, startServices } from '../../../lib/services/start-services.ts';
import { silentLog } from '../../support/log.ts';

export interface BenchServices extends Services {
  /** A folder for the bench's own files, gone with the rest. */
  dir: string;
}

/**
 * Runs `work` with a Postgres and a Redis of its own, as durable as in production: every commit is on disk before it
 * is answered, Redis appends to its file with a sync a second. Nothing is left running or on disk, also after Ctrl-C.
 */
export async function withServices<T>(work: (services: BenchServices) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'bakehouse-bench-'));
  // mkdtemp makes it 0700. Where we are root, Postgres runs as another account and must pass through.
  await chmod(dir, 0o711);
  const dataDir = join(dir, 'services');
  let interrupt: (reason: Error) => void = () => {};
  const interrupted = new Promise<never>((_, reject) => {
    interrupt = reject;
  });
  const onSignal = () => interrupt(new Error('interrupted'));
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  try {
    const services = await startServices({ dataDir, path: process.env.PATH, durable: true, log: silentLog });
    try {
      return await Promise.race([work(Object.assign(services, { dir })), interrupted]);
    } finally {
      await services.stop();
    }
  } finally {
    await removeServiceData(dataDir);
    await rm(dir, { recursive: true, force: true });
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}
