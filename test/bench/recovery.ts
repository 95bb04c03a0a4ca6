import { parseArgs } from 'node:util';
import { describeMachine } from './lib/machine.ts';
import { type Check, median, publishReport, type Row } from './lib/report.ts';
import { flushRedis, killWorker, LONG_FILM, longDose } from './recovery/deaths.ts';
import { openScene, type Scene } from './recovery/scene.ts';
import { withServersScene } from './recovery/servers.ts';

const { values: options } = parseArgs({
  options: {
    renders: { type: 'string', default: '300' },
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: 'worker,flush,servers' },
  },
});

interface Settings {
  name: string;
  leaseMs: number;
  sweepMs: number;
  /** How often each thing dies. */
  times: number;
}

/** The defaults of lib/config, and what a test or an impatient installation would choose. */
const SETTINGS: Settings[] = [
  { name: 'small', leaseMs: 3_000, sweepMs: 500, times: options.quick ? 1 : 5 },
  ...(options.quick ? [] : [{ name: 'default', leaseMs: 60_000, sweepMs: 5_000, times: 3 }]),
];

/** What media has to notice that its caller is gone and to kill ffmpeg. */
const FFMPEG_GONE_MS = 2_000;
/** Beyond the sweep: the statements, and Redis taking some hundred jobs, on a machine that is baking meanwhile. */
const MIRROR_MS = 1_000;
const only = options.only.split(',');
const BACKLOG = Number(options.renders);
/** Enough for some minutes of quick claims. */
const SERVERS_BACKLOG = 1_000;

const machine = await describeMachine();
const rows: Row[] = [];
const checks: Check[] = [];
const note = (text: string) => process.stderr.write(`${text}\n`);

const seconds = (ms: number) => Math.round(ms / 10) / 100;

function report(settings: Settings, what: string, ms: readonly number[], targetMs?: number): void {
  const worst = Math.max(...ms);
  rows.push({
    settings: settings.name,
    what,
    times: ms.length,
    'median s': seconds(median(ms)),
    'worst s': seconds(worst),
    'target s': targetMs === undefined ? null : seconds(targetMs),
  });
  if (targetMs === undefined) return;
  const name = `${what}, worst, in seconds (${settings.name})`;
  checks.push({ name, value: seconds(worst), op: '<=', target: seconds(targetMs) });
}

async function measure(settings: Settings): Promise<void> {
  const { leaseMs, sweepMs, times, name } = settings;
  const timeoutMs = 2 * leaseMs + 60_000;
  const env = { RENDER_LEASE_MS: String(leaseMs), SWEEP_MS: String(sweepMs) };
  const inScene = async (work: (scene: Scene) => Promise<void>) => {
    const scene = await openScene(env);
    await work(scene).finally(scene.stop);
  };
  const repeat = async <T>(what: string, die: (nth: number) => Promise<T>): Promise<T[]> => {
    const measured: T[] = [];
    for (let nth = 0; nth < times; nth++) {
      measured.push(await die(nth));
      note(`${name}: ${what}: ${JSON.stringify(measured.at(-1))}`);
    }
    return measured;
  };

  const killWorkers = async (scene: Scene, exerciseId: string) => {
    const kills = await repeat('worker killed', (nth) => killWorker(scene, { exerciseId, nth, timeoutMs }));
    const claimed = kills.map((kill) => kill.claimedMs);
    report(settings, 'worker SIGKILL: claimed again', claimed, leaseMs + sweepMs);
    const gone = kills.map((kill) => kill.ffmpegGoneMs);
    report(settings, 'worker SIGKILL: its ffmpeg gone', gone, FFMPEG_GONE_MS);
  };
  const flush = async (scene: Scene, exerciseId: string) => {
    const backlog = Array.from({ length: BACKLOG }, (_, at) => longDose(times + at));
    await scene.publish(exerciseId, backlog);
    const flushes = await repeat('flushed', () => flushRedis(scene, { timeoutMs }));
    const refilled = flushes.map(({ refilledMs }) => refilledMs);
    report(settings, 'FLUSHALL: queue refilled', refilled, sweepMs + MIRROR_MS);
    const baking = flushes.reduce((total, of) => total + of.baking, 0);
    const lost = flushes.reduce((total, { stopped }) => total + stopped, 0);
    const again = flushes.reduce((total, { claimedAgain }) => total + claimedAgain, 0);
    checks.push(
      { name: `bakes stopped by FLUSHALL, of ${baking} under way (${name})`, value: lost, op: '<=', target: 0 },
      { name: `bakes begun again by FLUSHALL, of ${baking} under way (${name})`, value: again, op: '<=', target: 0 },
    );
  };

  if (only.includes('worker') || only.includes('flush')) {
    await inScene(async (scene) => {
      const exerciseId = await scene.anExercise(LONG_FILM);
      if (only.includes('worker')) await killWorkers(scene, exerciseId);
      if (only.includes('flush')) await flush(scene, exerciseId);
    });
  }
  if (only.includes('servers')) {
    await withServersScene(env, SERVERS_BACKLOG, async ({ kill }) => {
      for (const server of ['Redis', 'Postgres'] as const) {
        const claimed = await repeat(`${server} killed`, () => kill(server, timeoutMs));
        report(settings, `${server} killed and restarted: next claim`, claimed);
      }
    });
  }
}

for (const settings of SETTINGS) await measure(settings);
const about = SETTINGS.map(
  ({ name, leaseMs, sweepMs, times }) =>
    `${name}: lease ${leaseMs} ms, sweep ${sweepMs} ms, each death ${times} times; backlog ${BACKLOG} renders.`,
);
process.exitCode = await publishReport({ bench: 'recovery', machine, about, rows, checks }, options);
