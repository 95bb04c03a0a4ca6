import { loadMediaConfig } from '../../lib/config/media.ts';
import { checkToolchain } from '../../lib/ffmpeg/capabilities.ts';
import { createLogger } from '../../lib/log.ts';
import { runMain } from '../../lib/run-main.ts';
import { findFfmpeg } from '../../lib/services/find-ffmpeg.ts';
import { onSignal } from '../../lib/shutdown.ts';
import { createMedia } from './media.ts';

async function main() {
  const config = loadMediaConfig();
  const log = createLogger('media', config.LOG_LEVEL);
  const toolchain = await checkToolchain(findFfmpeg(config));
  const media = await createMedia(config, { toolchain, log });
  onSignal(media.steps, log);
  process.stdout.write(`${JSON.stringify({ ready: true, url: media.url })}\n`);
}

runMain(main);
