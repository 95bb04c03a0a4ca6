import { loadBunnySimConfig } from '../../lib/config/bunny-sim.ts';
import { ConfigError } from '../../lib/config/env.ts';
import { createLogger } from '../../lib/log.ts';
import { runMain } from '../../lib/run-main.ts';
import { findFfmpeg } from '../../lib/services/find-ffmpeg.ts';
import { onSignal } from '../../lib/shutdown.ts';
import { Faults } from './faults.ts';
import { createSim } from './sim.ts';

async function main() {
  const env = loadBunnySimConfig();
  const problem = env.SIM_FAULTS === undefined ? undefined : Faults.problem(env.SIM_FAULTS);
  if (problem !== undefined) throw new ConfigError('bunny-sim', [`SIM_FAULTS: ${problem}`]);
  // Standard output is for the one line that says where it listens.
  const log = createLogger('bunny-sim', env.LOG_LEVEL, process.stderr);

  const sim = await createSim(
    {
      dataDir: env.SIM_DATA_DIR,
      transcode: env.SIM_FAST ? 'fast' : findFfmpeg(env),
      host: env.SIM_HOST,
      streamPort: env.SIM_STREAM_PORT,
      storagePort: env.SIM_STORAGE_PORT,
      cdnPort: env.SIM_CDN_PORT,
      webhookUrl: env.SIM_WEBHOOK_URL,
      faults: env.SIM_FAULTS,
      transcodeConcurrency: env.SIM_TRANSCODE_CONCURRENCY,
      libraryId: env.BUNNY_LIBRARY_ID,
      streamKey: env.BUNNY_STREAM_KEY,
      readOnlyKey: env.BUNNY_READ_ONLY_KEY,
      storageZone: env.BUNNY_STORAGE_ZONE,
      storageKey: env.BUNNY_STORAGE_KEY,
      storageReadKey: env.BUNNY_STORAGE_READ_KEY,
      cdnTokenKey: env.BUNNY_CDN_TOKEN_KEY,
    },
    { log },
  );
  onSignal([{ name: 'simulator', run: () => sim.close(), deadlineMs: 5000 }], log);

  const { streamUrl, storageUrl, cdnUrl } = sim;
  process.stdout.write(`${JSON.stringify({ ready: true, streamUrl, storageUrl, cdnUrl })}\n`);
}

runMain(main);
