import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Limiter } from '../../lib/cache/limiter.ts';

/** What the worker tells Prometheus. Labels come from fixed vocabularies only. */
export function workerMetrics(registry: Registry) {
  const registers = [registry];
  return {
    permitWait: new Histogram({
      name: 'bakehouse_permit_wait_seconds',
      help: 'Time that a job waited for its permit, or until it stopped waiting.',
      buckets: [0.05, 0.25, 1, 5, 15, 60, 300, 1800, 7200],
      registers,
    }),
    mediaTargets: new Gauge({
      name: 'bakehouse_media_targets_up',
      help: 'Media targets that answer this worker; 0 is no media.',
      registers,
    }),
    mediaRefusals: new Counter({
      name: 'bakehouse_media_refusals_total',
      help: 'Bakes that media did not take up although there was a permit, by error code.',
      labelNames: ['code'],
      registers,
    }),
    notConsuming: new Gauge({
      name: 'bakehouse_not_consuming',
      help: '1 while this worker takes no job of a kind although there are some.',
      labelNames: ['kind'],
      registers,
    }),
    consumersReplaced: new Counter({
      name: 'bakehouse_consumers_replaced_total',
      help: 'Consumers replaced because they took no job although there were some.',
      labelNames: ['kind'],
      registers,
    }),
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
    deliveries: new Counter({
      name: 'bakehouse_deliveries_total',
      help: 'Attempts to deliver webhooks to clinics: delivered, retry, failed, gone, hand-back, lease-lost.',
      labelNames: ['outcome'],
      registers,
    }),
    endpointsDisabled: new Counter({
      name: 'bakehouse_webhook_endpoints_disabled_total',
      help: 'Endpoints of clinics disabled because they were gone or failed for too long.',
      labelNames: ['reason'],
      registers,
    }),
    reconciled: new Counter({
      name: 'bakehouse_reconcile_actions_total',
      help: 'What reconcile repaired, by rule, and the videos it deleted.',
      labelNames: ['action'],
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

/** Gauges of the permits, read when they are asked for. */
export function watchLimiter(registry: Registry, limiter: Pick<Limiter, 'held' | 'capacity' | 'isLocal'>): void {
  const watch = (name: string, help: string, value: () => number) =>
    new Gauge({
      ...{ name, help, registers: [registry] },
      collect() {
        this.set(value());
      },
    });
  watch('bakehouse_permits_held', 'Permits for bakes that this worker holds.', limiter.held);
  watch('bakehouse_permits_capacity', 'Bakes that all workers may have under way at once.', limiter.capacity);
  watch('bakehouse_permits_local', '1 while Redis does not answer and the local cap rules.', () =>
    limiter.isLocal() ? 1 : 0,
  );
}
