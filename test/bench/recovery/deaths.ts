import { setTimeout as delay } from 'node:timers/promises';
import { type SQL, sql } from 'drizzle-orm';
import { Redis } from 'ioredis';
import { findRender } from '../../../lib/db/renders.ts';
import { rows } from '../../../lib/db/rows.ts';
import { processesBelow } from '../lib/processes.ts';
import { claimAfter, watch } from './events.ts';
import type { Scene } from './scene.ts';

/** What a flush of Redis cost. */
export interface FlushCost {
  refilledMs: number;
  /** Of the bakes under way at that moment: how many were stopped, and how many claimed a second time. */
  baking: number;
  stopped: number;
  claimedAgain: number;
  /** Why, for each that was stopped. */
  causes: string[];
}

/** The film of the bake that a worker dies in: long enough, and slow enough, that ffmpeg is at work when it does. */
export const LONG_FILM = { seconds: 12, size: '1280x720' };
/** A dose that shares no segment with the one of another number: what is cached is not encoded again. */
export const longDose = (nth: number) => ({
  sets: 1,
  reps: 2,
  leadInSeconds: 0,
  tempo: { out: 7 + nth / 20, back: 7 },
});

/**
 * SIGKILLs the worker while media's ffmpeg is baking for it. Answers how long until that ffmpeg was gone, and until the
 * render was claimed again, in milliseconds after the kill.
 */
export async function killWorker(
  scene: Scene,
  options: { exerciseId: string; nth: number; timeoutMs: number },
): Promise<{ ffmpegGoneMs: number; claimedMs: number }> {
  // Media does not die here, so it is still the process it was.
  const media = scene.all.media.pid ?? Number.NaN;
  const bakers = async () => (await processesBelow(media)).filter(({ command }) => /ffmpeg/.test(command));
  const published = await scene.publish(options.exerciseId, [longDose(options.nth)]);
  const encoding = await watch('an ffmpeg of the bake', { timeoutMs: 60_000 }, async () => {
    const found = await bakers();
    return found.length > 0 ? found : null;
  });
  // Not in its first moment: the bake is under way, and a heartbeat has been written since.
  await delay(1_000);
  const before = await bakers();
  if (before.length === 0) throw new Error(`the bake was over too soon: ${encoding.map((p) => p.command).join('\n')}`);

  const killedAt = Date.now();
  process.kill(await holderOf(scene, published[0] ?? ''), 'SIGKILL');
  await watch('the end of ffmpeg', { timeoutMs: options.timeoutMs, everyMs: 10 }, async () =>
    (await bakers()).length === 0 ? true : null,
  );
  const ffmpegGoneMs = Date.now() - killedAt;
  const claimedAt = await watch('the next claim', { timeoutMs: options.timeoutMs }, () =>
    claimAfter(scene.db, killedAt, published),
  );
  await watch('the bake of the next worker', { timeoutMs: 180_000, everyMs: 200 }, async () => {
    const render = await findRender(scene.db, published[0] ?? '');
    return render?.status === 'ready' || render?.status === 'transcoding' ? true : null;
  });
  return { ffmpegGoneMs, claimedMs: claimedAt - killedAt };
}

/** The worker that has claimed a render; its default name ends with its pid. */
async function holderOf(scene: Scene, renderId: string): Promise<number> {
  const pid = Number(/\d+$/.exec((await findRender(scene.db, renderId))?.claimedBy ?? '')?.[0]);
  if (!(pid > 1)) throw new Error(`nobody has claimed ${renderId}`);
  return pid;
}

/**
 * A bake counts as under way when it was claimed so long ago: a sweep of the mirror that had read the row before its claim
 * would otherwise add a job after the flush for what is baking already, and end that bake.
 */
const SETTLED_MS = 1_500;

/** FLUSHALL with a backlog, while bakes are under way. Resolves when the queue holds a job again for every pending render. */
export async function flushRedis(scene: Scene, { timeoutMs }: { timeoutMs: number }): Promise<FlushCost> {
  const redis = new Redis(scene.all.redisUrl);
  const prefix = 'bakehouse:renders';
  try {
    const baking = await watch('bakes under way', { timeoutMs: 120_000 }, async () => {
      const settled = sql`status = 'rendering' and claimed_at < now() - ${SETTLED_MS} * interval '1 millisecond'`;
      const found = await idsWhere(scene, settled);
      return found.length >= 2 ? found : null;
    });
    const flushedAt = Date.now();
    await redis.flushall();
    await watch('the refill', { timeoutMs }, async () => {
      const [pending, prioritised, waiting, active, delayed] = await Promise.all([
        duePending(scene),
        redis.zcard(`${prefix}:prioritized`),
        redis.llen(`${prefix}:wait`),
        redis.llen(`${prefix}:active`),
        redis.zcard(`${prefix}:delayed`),
      ]);
      return prioritised + waiting + active + delayed >= pending.length ? true : null;
    });
    const refilledMs = Date.now() - flushedAt;
    // Whether what was baking then went on shows within a lock's renewal and a heartbeat.
    await watch('the end of the bakes of that time', { timeoutMs: 300_000, everyMs: 100 }, async () =>
      (await idsWhere(scene, sql`status = 'rendering'`)).some((id) => baking.includes(id)) ? null : true,
    );
    const [cost] = await rows<{ stopped: string; again: string; causes: string[] | null }>(
      scene.db,
      sql`select count(*) filter (where from_status = 'rendering' and to_status = 'pending') as stopped,
                 count(*) filter (where cause = 'claim') as again,
                 jsonb_agg(cause) filter (where from_status = 'rendering' and to_status = 'pending') as causes
            from render_events
           where at > ${new Date(flushedAt).toISOString()} and render_id = any(${sql.param(baking)}::uuid[])`,
    );
    return {
      refilledMs,
      baking: baking.length,
      stopped: Number(cost?.stopped ?? 0),
      claimedAgain: Number(cost?.again ?? 0),
      causes: cost?.causes ?? [],
    };
  } finally {
    redis.disconnect();
  }
}

/** What waits for a later attempt has no business in the queue until then. */
const duePending = (scene: Scene) =>
  idsWhere(scene, sql`status = 'pending' and (not_before is null or not_before <= now())`);

async function idsWhere(scene: Scene, where: SQL): Promise<string[]> {
  const found = await rows<{ id: string }>(scene.db, sql`select id from exercise_renders where ${where}`);
  return found.map(({ id }) => id);
}
