import autocannon from 'autocannon';
import { cpuOf } from '../lib/processes.ts';
import type { Answer, Target } from './scene.ts';

export interface Load {
  requestsPerSecond: number;
  /** User and system time of the server's process. */
  cpuMicros: number;
  /** How much of one core the server had: well below 1, something else was the limit. */
  ofACore: number;
  p50Ms: number;
  p99Ms: number;
}

/**
 * Asks as fast as answers come, over so many connections, and holds every answer's status against the expected one.
 * Runs in this process, which is none of the servers.
 */
export async function load(options: {
  target: Target;
  answer: Answer;
  headersOf: (answer: Answer, connection: number) => Record<string, string>;
  connections: number;
  seconds: number;
}): Promise<Load> {
  const { target, answer, headersOf, connections, seconds } = options;
  let connection = 0;
  const before = await cpuOf({ server: [target.pid] });
  const started = performance.now();
  const result = await autocannon({
    url: target.url,
    connections,
    duration: seconds,
    setupClient: (client) => client.setHeaders(headersOf(answer, connection++)),
  });
  const elapsedMs = performance.now() - started;
  const after = await cpuOf({ server: [target.pid] });
  const answered = Object.entries(result.statusCodeStats ?? {}) as [string, { count: number }][];
  if (result.errors > 0 || answered.some(([status]) => status !== answer)) {
    throw new Error(`expected ${answer} alone, got ${JSON.stringify({ answered, errors: result.errors })}`);
  }
  const total = answered.reduce((sum, [, { count }]) => sum + count, 0);
  const cpuMs = after.server - before.server;
  return {
    requestsPerSecond: total / (elapsedMs / 1_000),
    cpuMicros: (cpuMs * 1_000) / total,
    ofACore: cpuMs / elapsedMs,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  };
}
