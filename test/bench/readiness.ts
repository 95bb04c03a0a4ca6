import { parseArgs } from 'node:util';
import { describeMachine } from './lib/machine.ts';
import { type Check, median, publishReport, type Row, round } from './lib/report.ts';
import { withServices } from './lib/services.ts';
import { type Load, load } from './readiness/load.ts';
import { ANSWERS, type Answer, openScene, SERVERS, type Server } from './readiness/scene.ts';

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '8' },
    runs: { type: 'string', default: '5' },
    connections: { type: 'string', default: '200' },
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
});
const seconds = options.quick ? 2 : Number(options.seconds);
const runs = options.quick ? 1 : Number(options.runs);
const connections = Number(options.connections);
/** Of the bare route's requests per second. */
const LEAST = 0.8;

const machine = await describeMachine();
const note = (text: string) => process.stderr.write(`${text}\n`);

type Measured = Record<Server, Load[]>;

const measured = await withServices(async (services) => {
  const scene = await openScene(services);
  const shoot = (server: Server, answer: Answer) =>
    load({ target: scene.targetOf(server, answer), answer, headersOf: scene.headersOf, connections, seconds });
  try {
    const found = new Map<Answer, Measured>();
    for (const answer of ANSWERS) {
      for (const server of SERVERS) await shoot(server, answer);
      found.set(answer, { edge: [], bare: [], 'bare, without headers': [] });
    }
    for (let run = 1; run <= runs; run++) {
      for (const [answer, figures] of found) {
        // Who begins changes from turn to turn.
        for (const server of run % 2 === 1 ? SERVERS : SERVERS.toReversed()) {
          const figure = await shoot(server, answer);
          figures[server].push(figure);
          note(`run ${run}, ${answer}, ${server}: ${JSON.stringify(figure)}`);
        }
      }
    }
    return found;
  } finally {
    await scene.stop();
  }
});

const rows: Row[] = [];
const checks: Check[] = [];
for (const [answer, figures] of measured) {
  for (const server of SERVERS) {
    const of = (name: keyof Load) => round(median(figures[server].map((figure) => figure[name])));
    rows.push({
      answer,
      server,
      'requests/s': of('requestsPerSecond'),
      'of bare': round(median(partsOfBare(figures, server))),
      'CPU µs/request': of('cpuMicros'),
      'of a core': of('ofACore'),
      'p50 ms': of('p50Ms'),
      'p99 ms': of('p99Ms'),
    });
  }
  checks.push({
    name: `requests/s of a ${answer}, as a part of the bare route’s in the same turn, median`,
    value: round(median(partsOfBare(figures, 'edge'))),
    op: '>=',
    target: LEAST,
  });
}

function partsOfBare(figures: Measured, server: Server): number[] {
  return figures[server].map(({ requestsPerSecond }, turn) => {
    return requestsPerSecond / (figures.bare[turn]?.requestsPerSecond ?? Number.NaN);
  });
}

const about = [
  `${connections} connections without pipelining, ${seconds} s a turn, ${runs} turns, medians; as long before to warm up.`,
];
process.exitCode = await publishReport({ bench: 'readiness', machine, about, rows, checks }, options);
