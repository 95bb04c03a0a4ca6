import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** What the worker tells Prometheus. Labels come from fixed vocabularies only. */
export function workerMetrics(registry: Registry) {
  const registers = [registry];
  return {
    claims: new Counter({
      name: 'bakehouse_render_claims_total',
      help: 'Renders claimed, and jobs whose render was not claimable.',
      labelNames: ['result'],
      registers,
    }),
    ends: new Counter({
      name: 'bakehouse_render_attempts_total',
      help: 'How claimed renders ended: uploaded, retry, dead-letter, hand-back, lease-lost.',
      labelNames: ['end', 'code'],
      registers,
    }),
    bakeSeconds: new Histogram({
      name: 'bakehouse_bake_duration_seconds',
      help: 'Time from claim to upload.',
      buckets: [1, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1280],
      registers,
    }),
    transcodes: new Counter({
      name: 'bakehouse_transcodes_total',
      help: 'Verdicts on transcodes, by what asked for them.',
      labelNames: ['verdict', 'cause'],
      registers,
    }),
    webhooks: new Counter({
      name: 'bakehouse_webhooks_applied_total',
      help: 'Webhook events by outcome.',
      labelNames: ['outcome'],
      registers,
    }),
    dutyRows: new Counter({
      name: 'bakehouse_maintenance_rows_total',
      help: 'Rows that a maintenance duty touched.',
      labelNames: ['duty'],
      registers,
    }),
    dutyLastRun: new Gauge({
      name: 'bakehouse_maintenance_last_run_timestamp_seconds',
      help: 'When a maintenance duty last ran to its end in this process.',
      labelNames: ['duty'],
      registers,
    }),
    dutyFailures: new Counter({
      name: 'bakehouse_maintenance_failures_total',
      help: 'Runs of a maintenance duty that failed.',
      labelNames: ['duty'],
      registers,
    }),
  };
}

export type WorkerMetrics = ReturnType<typeof workerMetrics>;
