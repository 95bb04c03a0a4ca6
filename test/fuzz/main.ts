import { Command, InvalidArgumentError } from 'commander';
import { startVitest } from 'vitest/node';
import type { FuzzOptions } from './drive.ts';

const whole = (text: string) => {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('expects a whole number');
  return Number(text);
};

const { seed, requests } = new Command('fuzz')
  .description('Sends the API requests that fit its document, nearly fit it, or do not, and holds every answer to it.')
  .option('--seed <number>', 'what decides the requests; by default another each time', whole, Date.now() % 1_000_000)
  .option('--requests <number>', 'how many', whole, 5_000)
  .parse()
  .opts<FuzzOptions>();

// Vitest brings Postgres, Redis and ffmpeg; the test tells what it saw, and its failure is the exit status.
const vitest = await startVitest('test', ['test/integration/edge/fuzz.test.ts'], {
  watch: false,
  provide: { fuzz: { seed, requests } },
});
await vitest.close();
