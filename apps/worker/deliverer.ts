import {
  claimDeliveries,
  type HeldDelivery,
  handBackDelivery,
  type Outcome,
  recordOutcome,
} from '../../lib/db/delivery-leases.ts';
import { bodyOf, nextAttemptMs } from '../../lib/domain/outbound.ts';
import { type ErrorCode, toAppError } from '../../lib/errors.ts';
import { createSigner } from '../../lib/outbound/secret.ts';
import { type Answer, createSender } from '../../lib/outbound/send.ts';
import { createTargetGuard, type Resolve } from '../../lib/outbound/target.ts';
import type { WorkerDeps } from './deps.ts';

export interface Deliverer {
  /** Breaks off what is under way and gives it back. */
  stop(): Promise<void>;
}

/** So many timeouts: a live worker has written what became of an attempt long before its lease ends. */
const LEASE_TIMEOUTS = 3;

const GONE = 410;

/**
 * Sends what is due, at most `DELIVERY_CONCURRENCY` at once and half of them to endpoints that fail, for as long as the
 * process runs; any number of workers do so side by side. A worker that dies leaves its deliveries to their leases' end:
 * each arrives at least once, and always under the same `webhook-id`. Without a signing key there are no endpoints to send to, and this does nothing.
 */
export function startDeliverer(
  { config, database: { db }, log, metrics }: Pick<WorkerDeps, 'config' | 'database' | 'log' | 'metrics'>,
  resolve?: Resolve,
): Deliverer {
  if (!config.WEBHOOK_SIGNING_KEY) return { stop: async () => undefined };
  const { DELIVERY_TIMEOUT_MS: timeoutMs, DELIVERY_RETRY_MS: schedule } = config;
  const signer = createSigner(config.WEBHOOK_SIGNING_KEY);
  const guard = createTargetGuard({ allowPrivate: config.WEBHOOK_ALLOW_PRIVATE, resolve });
  const send = createSender({ guard, timeoutMs });
  const stopping = new AbortController();
  const underWay = new Set<Promise<void>>();
  let failingUnderWay = 0;

  const attempt = (delivery: HeldDelivery): Promise<Answer> => {
    const { id, endpoint } = delivery;
    const body = bodyOf(delivery);
    return send(endpoint.url, signer.sign(endpoint, id, body, new Date()), body, stopping.signal);
  };

  const judge = async (delivery: HeldDelivery): Promise<Omit<Outcome, 'durationMs'> | 'stopped'> => {
    const failed = (errorCode: ErrorCode, status: number | null, askedMs?: number) => {
      const retryMs = nextAttemptMs(schedule, delivery.tries + 1, { askedMs, random: Math.random() });
      return { status, errorCode, retryMs, gone: false };
    };
    try {
      const { status, retryAfterMs } = await attempt(delivery);
      if (status >= 200 && status < 300) return { status, errorCode: null, retryMs: null, gone: false };
      if (status === GONE) return { status, errorCode: 'endpoint_gone', retryMs: null, gone: true };
      return failed('endpoint_refused', status, retryAfterMs);
    } catch (thrown) {
      if (stopping.signal.aborted) return 'stopped';
      const error = toAppError(thrown, 'endpoint_unreachable');
      // Not the address: it may carry a secret of the clinic's.
      log.debug({ deliveryId: delivery.id, code: error.code, detail: error.detail }, 'webhook not delivered');
      return failed(error.code, null);
    }
  };

  const deliver = async (delivery: HeldDelivery) => {
    const started = performance.now();
    const outcome = await judge(delivery);
    if (outcome === 'stopped') {
      await handBackDelivery(db, delivery);
      metrics.deliveries.inc({ outcome: 'hand-back' });
      return;
    }
    const durationMs = performance.now() - started;
    const giveUpMs = config.DELIVERY_GIVE_UP_MS;
    const { held, disabled } = await recordOutcome(db, delivery, { ...outcome, durationMs }, { giveUpMs });
    metrics.deliveries.inc({ outcome: held ? nameOf(outcome) : 'lease-lost' });
    if (disabled === null) return;
    metrics.endpointsDisabled.inc({ reason: disabled });
    log.warn({ endpointId: delivery.endpoint.id, reason: disabled }, 'webhook endpoint disabled');
  };

  const claim = async (): Promise<HeldDelivery[]> => {
    const free = config.DELIVERY_CONCURRENCY - underWay.size;
    if (free === 0) return [];
    return claimDeliveries(db, {
      limit: free,
      failingLimit: Math.max(0, Math.ceil(config.DELIVERY_CONCURRENCY / 2) - failingUnderWay),
      perEndpoint: config.DELIVERY_PER_ENDPOINT,
      leaseMs: LEASE_TIMEOUTS * timeoutMs,
    });
  };

  /** Something has ended since the last look: the next one of the same endpoint may go. */
  let ended = false;
  let wake = () => {};
  const lookAgain = () => {
    ended = true;
    wake();
  };
  const pause = () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ended ? 0 : config.DELIVERY_POLL_MS);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  const loop = async () => {
    while (!stopping.signal.aborted) {
      ended = false;
      const claimed = await claim().catch((err: unknown) => {
        log.warn({ err }, 'webhooks to send could not be looked for');
        return [];
      });
      for (const delivery of claimed) {
        if (delivery.endpoint.failing) failingUnderWay += 1;
        // Where Postgres is away its lease ends, and it is delivered once more.
        const sending = deliver(delivery)
          .catch((err: unknown) =>
            log.warn({ err, deliveryId: delivery.id }, 'what became of a webhook was not written'),
          )
          .finally(() => {
            underWay.delete(sending);
            if (delivery.endpoint.failing) failingUnderWay -= 1;
            lookAgain();
          });
        underWay.add(sending);
      }
      await pause();
    }
  };

  const looping = loop();
  return {
    stop: async () => {
      stopping.abort();
      lookAgain();
      await looping;
      await Promise.all(underWay);
    },
  };
}

const nameOf = ({ errorCode, retryMs, gone }: Omit<Outcome, 'durationMs'>) =>
  errorCode === null ? 'delivered' : gone ? 'gone' : retryMs === null ? 'failed' : 'retry';
