import { parseArgs } from 'node:util';
import { describeMachine } from './lib/machine.ts';
import { median, publishReport, type Row, round } from './lib/report.ts';
import { withServices } from './lib/services.ts';
import { runBare } from './queue/bare.ts';
import { type Figures, runLifecycle } from './queue/lifecycle.ts';
import { POSTGRES_QUEUES, VARIANTS, type Variant } from './queue/variants.ts';

const { values: options } = parseArgs({
  options: {
    renders: { type: 'string', default: '10000' },
    runs: { type: 'string', default: '3' },
    concurrency: { type: 'string', default: '16' },
    workers: { type: 'string', default: '2' },
    only: { type: 'string', default: VARIANTS.join(',') },
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
});
const renders = options.quick ? 1_000 : Number(options.renders);
const runs = options.quick ? 1 : Number(options.runs);
const warmUp = Math.min(1_000, renders);
const workers = Number(options.workers);
const concurrencies = options.concurrency.split(',').map(Number);
const variants = VARIANTS.filter((variant) => options.only.split(',').includes(variant));

const machine = await describeMachine();
const note = (text: string) => process.stderr.write(`${text}\n`);

interface Measured {
  bare: number[];
  lifecycle: Map<Variant, Figures[]>;
}

/** All variants take turns, so that whatever else the machine does meanwhile hits them alike. */
const measure = (concurrency: number) =>
  withServices(async (services): Promise<Measured> => {
    const measured: Measured = { bare: [], lifecycle: new Map(variants.map((variant) => [variant, []])) };
    for (let run = 1; run <= runs; run++) {
      await runBare(services.redisUrl, { jobs: warmUp, concurrency });
      measured.bare.push(await runBare(services.redisUrl, { jobs: renders, concurrency }));
      for (const variant of variants) {
        const figures = await runLifecycle(services, { variant, workers, concurrency, renders, warmUp });
        measured.lifecycle.get(variant)?.push(figures);
        note(`run ${run}, concurrency ${concurrency}, ${variant}: ${JSON.stringify(figures)}`);
      }
    }
    return measured;
  });

const rows: Row[] = [];
const ratios = new Map<Variant, number[]>(variants.map((variant) => [variant, []]));
const overheads: number[] = [];
for (const concurrency of concurrencies) {
  const { bare, lifecycle } = await measure(concurrency);
  const bareRate = median(bare);
  rows.push({ concurrency, variant: 'bare BullMQ', 'renders/s': round(bareRate), 'ms/render': round(1000 / bareRate) });
  const ours = lifecycle.get('bakehouse') ?? [];
  for (const [variant, figures] of lifecycle) {
    const rate = median(figures.map((figure) => figure.rendersPerSecond));
    const cpu = (name: keyof Figures['cpuMs']) => round(median(figures.map((figure) => figure.cpuMs[name])));
    rows.push({
      concurrency,
      variant,
      'renders/s': round(rate),
      'ms/render': round(1000 / rate),
      'CPU ms: worker': cpu('worker'),
      edge: cpu('edge'),
      Postgres: cpu('postgres'),
      Redis: cpu('redis'),
    });
    // A machine that is shared changes its pace by a third within minutes: each run of ours is held against theirs of
    // the same turn.
    const perTurn = figures.map(
      (theirs, turn) => (ours[turn]?.rendersPerSecond ?? Number.NaN) / theirs.rendersPerSecond,
    );
    ratios.get(variant)?.push(median(perTurn));
    if (variant === 'bakehouse') overheads.push(round(1000 / rate - 1000 / bareRate));
  }
}
const checks = POSTGRES_QUEUES.filter((rival) => variants.includes(rival) && variants.includes('bakehouse')).flatMap(
  (rival) =>
    (ratios.get(rival) ?? []).map((ratio, at) => ({
      name: `renders/s of bakehouse, as a multiple of ${rival} in the same turn, median, at concurrency ${concurrencies[at]}`,
      value: round(ratio),
      op: '>=' as const,
      target: 1,
    })),
);
const about = [
  `${renders} renders from publish to ready, ${runs} runs in turns, medians; ${warmUp} before each run to warm up; worker processes: ${workers}.`,
  ...overheads.map(
    (ms, at) => `Overhead over a bare BullMQ job at concurrency ${concurrencies[at]}: ${ms} ms per render.`,
  ),
];
process.exitCode = await publishReport({ bench: 'queue', machine, about, rows, checks }, options);
