import { dueWebhooks } from '../../../lib/db/webhooks.ts';
import { applyWebhook } from '../handlers/webhook.ts';
import type { Duty } from './duty.ts';

const BATCH = 50;

/** Applies stored webhooks that no worker was told of, or that came before what they tell of. */
export const webhookReplay: Duty = {
  name: 'webhook-replay',
  every: 1,
  run: async (deps) => {
    const events = await dueWebhooks(deps.database.db, BATCH);
    for (const event of events) await applyWebhook(deps, event);
    return events.length;
  },
};
