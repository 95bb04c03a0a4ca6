import { randomUUID } from 'node:crypto';
import { eq, type SQL, sql } from 'drizzle-orm';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cancelCommand } from '../../../apps/cli/commands/cancel.ts';
import { doctorCommand } from '../../../apps/cli/commands/doctor.ts';
import type { PipelineFindings } from '../../../apps/cli/doctor/pipeline.ts';
import { exerciseRenders, renderEvents, sessionItems } from '../../../lib/db/schema/index.ts';
import { storeWebhookEvent } from '../../../lib/db/webhooks.ts';
import type { RenderStatus } from '../../../lib/domain/render-states.ts';
import { runCommand } from '../../support/cli.ts';
import { anExercise } from '../../support/clinic.ts';
import { testRedis } from '../../support/redis.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { aRender as makeRender } from './renders.ts';

const database = useTestDatabase();

// What the database refuses cannot be shown to be found.
beforeAll(async () => {
  const { rows } = await database.db.execute(
    sql`select conname from pg_constraint where conrelid = 'exercise_renders'::regclass and contype = 'c'`,
  );
  for (const { conname } of rows)
    await database.db.execute(sql`alter table exercise_renders drop constraint ${sql.identifier(String(conname))}`);
});
beforeEach(() => database.db.execute(sql`truncate exercise_renders, webhook_events, programs, organisations cascade`));

const aRender = async (to: RenderStatus | 'waiting') => (await makeRender(database.db, to)).id;
const doctor = (args: string[] = [], env: Record<string, string> = {}) =>
  runCommand(doctorCommand(), ['--pipeline', ...args], { DATABASE_URL: database.url, ...env });
const change = (id: string, set: SQL) => database.db.execute(sql`update exercise_renders set ${set} where id = ${id}`);

async function findings(args: string[] = [], env: Record<string, string> = {}): Promise<PipelineFindings> {
  const { stdout, exitCode } = await doctor(['--json', ...args], env);
  const found = JSON.parse(stdout) as PipelineFindings;
  expect(exitCode).toBe(found.ok ? 0 : 1);
  return found;
}

describe('what is under way', () => {
  it('is told with its owner, its deadline and the sweeper that moves it then; what has ended is not', async () => {
    const [mirror, queue, backoff, worker, bunny, hooked] = [
      await aRender('pending'),
      await aRender('pending'),
      await aRender('waiting'),
      await aRender('rendering'),
      await aRender('transcoding'),
      await aRender('transcoding'),
    ];
    await aRender('ready');
    await aRender('failed');
    await change(queue, sql`dispatched_at = now()`);
    await storeWebhookEvent(database.db, {
      videoGuid: `video-${hooked}`,
      libraryId: 1,
      status: 3,
      body: '{}',
      verifiedBy: 'signature',
    });
    const found = await findings();
    const told = Object.fromEntries(
      found.underWay.renders.map(({ id, owner, sweeper, worker, overdue }) => [
        id,
        { owner, sweeper, worker, overdue },
      ]),
    );
    const nobody = { worker: null, overdue: false };
    expect(told).toEqual({
      [mirror]: { owner: 'mirror', sweeper: 'mirror-sweep', ...nobody },
      [queue]: { owner: 'queue', sweeper: 'mirror-sweep', ...nobody },
      [backoff]: { owner: 'backoff', sweeper: 'mirror-sweep', ...nobody },
      [worker]: { owner: 'worker', sweeper: 'lease-sweep', worker: 'worker-1', overdue: false },
      [bunny]: { owner: 'bunny', sweeper: 'transcode-backstop', ...nobody },
      [hooked]: { owner: 'bunny', sweeper: 'webhook-replay', ...nobody },
    });
    expect(found).toMatchObject({
      ok: true,
      underWay: { total: 6, overdue: 0 },
      inbox: { unapplied: 1, overdue: 0 },
      broken: [],
      history: { renders: 8, violated: 0 },
      queues: null,
    });
    const inSeconds = (id: string) => {
      const render = found.underWay.renders.find((each) => each.id === id)!;
      return (new Date(render.deadline!).getTime() - Date.now()) / 1000;
    };
    expect(inSeconds(queue)).toBeCloseTo(120, -1);
    expect(inSeconds(worker)).toBeCloseTo(60, -1);
    expect(inSeconds(backoff)).toBeGreaterThan(3_500);
  });

  it.each<[RenderStatus | 'waiting', string, SQL]>([
    ['pending', 'mirror-sweep', sql`updated_at = now() - interval '1 minute'`],
    ['pending', 'mirror-sweep', sql`dispatched_at = now() - interval '1 hour'`],
    ['waiting', 'mirror-sweep', sql`not_before = now() - interval '1 minute', updated_at = now() - interval '1 hour'`],
    ['rendering', 'lease-sweep', sql`lease_expires_at = now() - interval '1 minute'`],
    ['transcoding', 'transcode-backstop', sql`transcode_deadline_at = now() - interval '1 minute'`],
  ])('and %s is overdue where the %s does not come', async (status, sweeper, set) => {
    const [late, fine] = [await aRender(status), await aRender('transcoding')];
    await change(late, set);
    const found = await findings();
    expect(found).toMatchObject({
      ok: false,
      underWay: { total: 2, overdue: 1 },
      broken: [],
      history: { violated: 0 },
    });
    expect(found.underWay.renders).toMatchObject([
      { id: late, overdue: true, sweeper },
      { id: fine, overdue: false },
    ]);
    // A few of the longer sweeps may pass before that is a reason for alarm.
    expect(await findings([], { SWEEP_MS: '3600000' })).toMatchObject({ ok: true });
  });

  it('is not overdue where more is due than the queue is to hold', async () => {
    for (const id of [await aRender('pending'), await aRender('pending')])
      await change(id, sql`updated_at = now() - interval '1 hour'`);
    expect(await findings()).toMatchObject({ underWay: { overdue: 2 } });
    const found = await findings([], { RENDER_QUEUE_MAX_MIRRORED: '1' });
    expect(found).toMatchObject({ ok: true, underWay: { overdue: 0, counts: [{ owner: 'turn', count: 2 }] } });
    expect(found.underWay.renders).toMatchObject([{ deadline: null }, { deadline: null }]);
  });

  it('is cut at the limit with its totals whole', async () => {
    for (let i = 0; i < 3; i++) await aRender('pending');
    const found = await findings(['--limit', '2']);
    expect(found.underWay.renders).toHaveLength(2);
    expect(found).toMatchObject({ underWay: { total: 3, counts: [{ status: 'pending', owner: 'mirror', count: 3 }] } });
    expect((await doctor(['--limit', '2'])).stdout).toContain('… and 1 more');
  });

  it('counts a webhook that no replay takes up', async () => {
    await storeWebhookEvent(database.db, { videoGuid: 'v', libraryId: 1, status: 3, body: '{}', verifiedBy: 'token' });
    await database.db.execute(sql`update webhook_events set next_try_at = now() - interval '1 minute'`);
    expect(await findings()).toMatchObject({ ok: false, inbox: { unapplied: 1, overdue: 1 } });
  });
});

describe('the queues', () => {
  it('are told where Redis answers, and left out where it does not', async () => {
    const { url, prefix } = testRedis();
    const found = await findings([], { REDIS_URL: url, REDIS_PREFIX: prefix });
    expect(found.queues).toMatchObject({ renders: { active: 0, delayed: 0 }, webhooks: { waiting: 0 } });
    expect(await findings([], { REDIS_URL: 'redis://127.0.0.1:9' })).toMatchObject({ ok: true, queues: null });
  });
});

describe('a row that breaks what must hold', () => {
  const guid = randomUUID();
  it.each<[string, RenderStatus, SQL]>([
    ['ready-plays', 'ready', sql`manifest_url = null`],
    ['ready-plays', 'ready', sql`ready_at = null`],
    ['rendering-is-leased', 'rendering', sql`lease_token = null`],
    ['lease-only-while-rendering', 'failed', sql`lease_token = ${guid}::uuid`],
    ['transcoding-has-video', 'transcoding', sql`transcode_deadline_at = null`],
    ['failed-says-why', 'failed', sql`error_code = null`],
  ])('is found: %s', async (name, status, set) => {
    await aRender(status);
    const id = await aRender(status);
    await change(id, set);
    const found = await findings();
    expect(found).toMatchObject({ ok: false, history: { violated: 0 } });
    expect(found.broken).toMatchObject([{ name, count: 1, ids: [id] }]);
    expect((await doctor()).stdout).toContain(`VIOLATED   ${name}`);
  });

  it('is found: attempts-in-bounds', async () => {
    const id = await aRender('transcoding');
    await change(id, sql`attempts = max_attempts + 1`);
    expect((await findings()).broken).toMatchObject([{ name: 'attempts-in-bounds', ids: [id] }]);
    const spent = await aRender('pending');
    await change(spent, sql`attempts = max_attempts`);
    expect((await findings()).broken).toMatchObject([{ name: 'attempts-in-bounds', count: 2 }]);
  });

  it('is found: one-row-per-video', async () => {
    const ids = [await aRender('ready'), await aRender('ready')];
    for (const id of ids) await change(id, sql`video_guid = 'the-same'`);
    expect((await findings()).broken).toMatchObject([{ name: 'one-row-per-video', count: 2, ids: [...ids].sort() }]);
  });

  it('is found: published-item-has-render, item-plays-its-exercise', async () => {
    await aRender('ready');
    const [item] = await database.db.select().from(sessionItems);
    const other = await anExercise(database.db);
    await database.db.update(sessionItems).set({ exerciseId: other.id });
    expect((await findings()).broken).toMatchObject([{ name: 'item-plays-its-exercise', ids: [item!.id] }]);
    await database.db.update(sessionItems).set({ renderId: null });
    expect((await findings()).broken).toMatchObject([{ name: 'published-item-has-render', ids: [item!.id] }]);
  });
});

describe('a history', () => {
  it('that the table of moves does not allow is found, event by event', async () => {
    await aRender('ready');
    const id = await aRender('ready');
    await database.db
      .update(renderEvents)
      .set({ leaseToken: randomUUID() })
      .where(sql`render_id = ${id} and cause = 'uploaded'`);
    await change(id, sql`generation = 1`);
    const found = await findings();
    expect(found).toMatchObject({ ok: false, broken: [], history: { renders: 2, violated: 1 } });
    expect(found.history.violations).toMatchObject([
      { renderId: id, rule: 'fence', index: 2 },
      { renderId: id, rule: 'row' },
    ]);
    expect((await doctor()).stdout).toMatch(new RegExp(`VIOLATED {3}history-fence: ${id}: rendering → transcoding`));
  });

  it('may have lost its beginning to pruning, but only where everything as old is gone', async () => {
    const [old, young] = [await aRender('ready'), await aRender('ready')];
    const forgetBirth = (id: string) =>
      database.db.delete(renderEvents).where(sql`render_id = ${id} and from_status is null`);
    await forgetBirth(old);
    expect(await findings()).toMatchObject({ ok: true });
    await forgetBirth(young);
    expect((await findings()).history.violations).toMatchObject([{ renderId: young, rule: 'birth' }]);
  });

  it('of many renders is read page by page', async () => {
    await aRender('pending');
    await database.db.execute(sql`
      with more as (
        insert into exercise_renders (id, exercise_id, recipe_hash, language, recipe, fair_key, fair_tag)
        select gen_random_uuid(), exercise_id, lpad(to_hex(n), 64, '0'), language, recipe, fair_key, fair_tag
          from exercise_renders, generate_series(1, 1200) as n returning id)
      insert into render_events (render_id, generation, to_status, attempt, cause) select id, 0, 'pending', 0, 'published' from more`);
    await runCommand(cancelCommand(), ['--all'], { DATABASE_URL: database.url });
    expect(await findings()).toMatchObject({
      ok: true,
      underWay: { total: 0 },
      history: { renders: 1_201, violated: 0 },
    });
    await database.db.update(exerciseRenders).set({ status: 'pending' }).where(eq(exerciseRenders.status, 'failed'));
    const found = await findings(['--limit', '3']);
    expect(found.history).toMatchObject({ violated: 1_201 });
    expect(found.history.violations).toHaveLength(3);
  });
});

describe('bad input', () => {
  it.each([
    [['--limit', '0'], /whole number from 1/],
    [['--limit', '1e3'], /whole number from 1/],
    [['--limit', 'all'], /whole number from 1/],
    [['--limit', '1.5'], /whole number from 1/],
    [['rest'], /too many arguments/],
  ])('%j is refused with what is expected instead', async (args, message) => {
    expect(await doctor(args)).toMatchObject({ exitCode: 1, stdout: '', stderr: expect.stringMatching(message) });
  });
});
