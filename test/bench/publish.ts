import { parseArgs } from 'node:util';
import { describeMachine } from './lib/machine.ts';
import { type Check, median, publishReport, type Row, round } from './lib/report.ts';
import { withServices } from './lib/services.ts';
import { openOurSide, openRawSide, type Published, type Raw } from './publish/sides.ts';

const { values: options } = parseArgs({
  options: {
    items: { type: 'string', default: '10,100,1000' },
    runs: { type: 'string', default: '15' },
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
});
const sizes = options.items.split(',').map(Number);
const runs = options.quick ? 3 : Number(options.runs);
/** Plans are made at a statement's first uses, code is compiled, and files grow. */
const WARM_UP = options.quick ? 1 : 5;
const MOST_OF_RAW = 1.5;
const HITS_MOST_OF_NEW = 0.5;

const machine = await describeMachine();
const note = (text: string) => process.stderr.write(`${text}\n`);

interface Turn {
  publish: Published;
  raw: Raw;
  hits: Published;
}

const measured = await withServices(async (services) => {
  const [ours, raw] = [await openOurSide(services), await openRawSide(services)];
  const found = new Map<number, Turn[]>();
  const takeTurn = async (items: number): Promise<Turn> => {
    const programId = await ours.aDraft(items);
    const publish = await ours.publish(programId);
    const written = await raw.write(ours, programId);
    await ours.finishAll();
    const hits = await ours.publish(await ours.aDraft(items, programId));
    return { publish, raw: written, hits };
  };
  try {
    for (const items of sizes) {
      for (let nth = 0; nth < WARM_UP; nth++) await takeTurn(items);
      const turns: Turn[] = [];
      for (let nth = 0; nth < runs; nth++) turns.push(await takeTurn(items));
      found.set(items, turns);
      note(`${items} items: ${JSON.stringify(turns.at(-1))}`);
    }
    return found;
  } finally {
    await ours.close();
    await raw.close();
  }
});

const rows: Row[] = [];
const checks: Check[] = [];
const ms = (values: readonly number[]) => round(median(values));
for (const [items, turns] of measured) {
  const part = (of: (turn: Turn) => number) => round(median(turns.map((turn) => of(turn) / turn.raw.totalMs)));
  const ourRow = (what: string, of: (turn: Turn) => Published): Row => ({
    items,
    what,
    statements: Math.max(...turns.map((turn) => of(turn).statements)),
    'Postgres ms': ms(turns.map((turn) => of(turn).committedMs)),
    'queue ms': ms(turns.map((turn) => of(turn).totalMs - of(turn).committedMs)),
    'total ms': ms(turns.map((turn) => of(turn).totalMs)),
    'of raw': part((turn) => of(turn).totalMs),
  });
  rows.push(
    {
      items,
      what: 'raw',
      statements: 4,
      'Postgres ms': ms(turns.map(({ raw }) => raw.rendersMs + raw.eventsMs)),
      'queue ms': ms(turns.map(({ raw }) => raw.addBulkMs)),
      'total ms': ms(turns.map(({ raw }) => raw.totalMs)),
      'of raw': 1,
    },
    ourRow('publish, all new', ({ publish }) => publish),
    ourRow('publish, all there', ({ hits }) => hits),
  );
  if (items !== Math.max(...sizes)) continue;
  checks.push(
    {
      name: `time of a publish of ${items} new items, as a multiple of the raw pair’s in the same turn, median`,
      value: part(({ publish }) => publish.totalMs),
      op: '<=',
      target: MOST_OF_RAW,
    },
    {
      name: `time of a publish of ${items} items that are all there, as a part of that of new ones, median`,
      value: round(median(turns.map(({ publish, hits }) => hits.totalMs / publish.totalMs))),
      op: '<=',
      target: HITS_MOST_OF_NEW,
    },
  );
}
const statements = [...measured.values()].flatMap((turns) => turns.map(({ publish }) => publish.statements));
checks.push({
  name: `statements by which publishes of ${sizes.join(', ')} new items differ`,
  value: Math.max(...statements) - Math.min(...statements),
  op: '<=',
  target: 0,
});
const about = [
  `${runs} turns of each size, medians; ${WARM_UP} before each to warm up. Statements include begin and commit.`,
  'raw: one multi-row insert of the same renders, one of their history, in one transaction; one addBulk of their jobs.',
];
process.exitCode = await publishReport({ bench: 'publish', machine, about, rows, checks }, options);
