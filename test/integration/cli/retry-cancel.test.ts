import { randomUUID } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import { cancelCommand } from '../../../apps/cli/commands/cancel.ts';
import { retryCommand } from '../../../apps/cli/commands/retry.ts';
import type { OperateReport } from '../../../apps/cli/operate/report.ts';
import type { Render } from '../../../lib/db/move.ts';
import { publishProgram } from '../../../lib/db/publish.ts';
import { findRender, heartbeat, markReady } from '../../../lib/db/renders.ts';
import { exerciseRenders, members, notifications, renderEvents } from '../../../lib/db/schema/index.ts';
import { historyViolations } from '../../../lib/domain/history.ts';
import type { RenderStatus } from '../../../lib/domain/render-states.ts';
import { cancelRenders, retryRenders } from '../../../lib/pipeline/operate.ts';
import { runCommand } from '../../support/cli.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { useTestDatabase } from '../../support/test-db.ts';
import { waitFor } from '../../support/wait.ts';
import { aRender as makeRender } from './renders.ts';

const database = useTestDatabase();

beforeEach(() => database.db.execute(sql`truncate exercise_renders, programs, organisations cascade`));

const reload = async (id: string): Promise<Render> => (await findRender(database.db, id))!;
const eventsOf = (id: string) =>
  database.db.select().from(renderEvents).where(eq(renderEvents.renderId, id)).orderBy(renderEvents.id);

const aRender = (to: RenderStatus | 'waiting', code?: string, language?: string) =>
  makeRender(database.db, to, code, language);

const env = () => ({ DATABASE_URL: database.url });
const retry = (...args: string[]) => runCommand(retryCommand(), args, env());
const cancel = (...args: string[]) => runCommand(cancelCommand(), args, env());
const reportOf = ({ stdout }: { stdout: string }) => JSON.parse(stdout) as OperateReport;

describe('retry', () => {
  it('makes a failed render pending in a new generation, and says so', async () => {
    const { id, exerciseId } = await aRender('failed');
    const { exitCode, stdout } = await retry(id);
    expect(exitCode).toBe(0);
    expect(stdout).toBe(`${id}  exercise ${exerciseId}  failed → pending (ffmpeg_failed)\n1 retried, 0 refused.\n`);
    expect(await reload(id)).toMatchObject({
      status: 'pending',
      generation: 1,
      attempts: 0,
      errorCode: null,
      dispatchedAt: null,
    });
    expect((await eventsOf(id)).at(-1)).toMatchObject({ fromStatus: 'failed', cause: 'bakehouse retry' });
  });

  it.each([
    ['ffmpeg_failed', true],
    ['transcode_failed', false],
    ['transcode_truncated', false],
  ])('after %s keeps the video: %s', async (code, keeps) => {
    const { id } = await aRender('failed', code);
    await retry(id);
    expect((await reload(id)).videoGuid !== null).toBe(keeps);
  });

  it('makes a ready render anew only by force', async () => {
    const { id } = await aRender('ready');
    const refused = await retry(id);
    expect(refused).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining('ready, refused: is ready: --force'),
    });
    expect(await reload(id)).toMatchObject({ status: 'ready', generation: 0 });
    expect(await retry(id, '--force')).toMatchObject({ exitCode: 0 });
    expect(await reload(id)).toMatchObject({ status: 'pending', generation: 1, videoGuid: null, readyAt: null });
  });

  it('makes what waits for a later attempt due at once, as the same attempt of the same generation', async () => {
    const { id } = await aRender('waiting');
    await database.db.update(exerciseRenders).set({ dispatchedAt: new Date() });
    expect(await retry(id)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('pending → pending due now'),
    });
    expect(await reload(id)).toMatchObject({
      status: 'pending',
      generation: 0,
      attempts: 1,
      notBefore: null,
      dispatchedAt: null,
    });
    expect(await retry(id)).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('waits for nothing') });
  });

  it('locks what waits in the order of the hashes, as every move does', async () => {
    const [last, first] = [await aRender('waiting'), await aRender('waiting')];
    for (const [{ id }, digit] of [
      [last, 'f'],
      [first, '0'],
    ] as const)
      await database.db
        .update(exerciseRenders)
        .set({ recipeHash: digit.repeat(64) })
        .where(eq(exerciseRenders.id, id));
    const other = await database.connect();
    try {
      await other.query('begin');
      await other.query('select id from exercise_renders where id = $1 for update', [first.id]);
      const retried = retry(last.id, first.id);
      await waitFor(
        async () =>
          (
            await other.query(
              'select from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))',
            )
          ).rowCount,
        { label: 'the retry to wait for the first' },
      );
      const free = 'select id from exercise_renders where id = $1 for update skip locked';
      expect((await other.query(free, [last.id])).rowCount).toBe(1);
      await other.query('commit');
      expect(await retried).toMatchObject({ exitCode: 0 });
    } finally {
      other.release(true);
    }
  });

  it.each(['rendering', 'transcoding'] as const)('refuses what is %s with a word why', async (status) => {
    const { id } = await aRender(status);
    const before = await reload(id);
    expect(await retry(id, '--force')).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining('cancel it first'),
    });
    expect(await reload(id)).toEqual(before);
  });

  it('takes the beginning of an id or of a recipe hash, and the same render twice once', async () => {
    const { id } = await aRender('failed');
    const { recipeHash } = await reload(id);
    const report = reportOf(await retry(recipeHash.slice(0, 8).toUpperCase(), id.slice(0, 20), id, '--json'));
    expect(report).toEqual({
      dryRun: false,
      done: 1,
      refused: 0,
      renders: [expect.objectContaining({ id, recipeHash, from: 'failed', to: 'pending', code: 'ffmpeg_failed' })],
    });
  });

  it('does nothing at all where one of the ids is unknown or stands for several', async () => {
    const [one, two] = [await aRender('failed'), await aRender('failed')];
    await database.db
      .update(exerciseRenders)
      .set({ recipeHash: `abcdef12${'0'.repeat(56)}` })
      .where(eq(exerciseRenders.id, one.id));
    await database.db
      .update(exerciseRenders)
      .set({ recipeHash: `abcdef12${'1'.repeat(56)}` })
      .where(eq(exerciseRenders.id, two.id));
    expect(await retry(one.id, 'abcdef12', 'ffffffff')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/2 renders begin with abcdef12: give more of it[\s\S]*begins with ffffffff/),
    });
    expect(await reload(one.id)).toMatchObject({ status: 'failed' });
  });

  it('takes what all of the filters select and nothing else', async () => {
    const wanted = await aRender('failed', 'media_silent', 'de');
    const others = [await aRender('failed', 'media_silent'), await aRender('failed', 'ffmpeg_failed', 'de')];
    await database.db.execute(
      sql`update render_events set at = now() - interval '2 hours' where render_id = ${wanted.id}`,
    );
    const filters = [
      ['--language', 'de', '--code', 'media_silent,media_unavailable'],
      ['--program', wanted.programId],
      ['--exercise', wanted.exerciseId.toUpperCase()],
      ['--org', wanted.orgId, '--status', 'failed,waiting'],
      ['--older-than', '90m'],
    ];
    for (const filter of filters) {
      const report = reportOf(await retry(...filter, '--dry-run', '--json'));
      expect(report.renders.map(({ id }) => id)).toEqual([wanted.id]);
    }
    expect(await retry('--older-than', '1d')).toMatchObject({ exitCode: 1, stdout: 'No render matches.\n' });
    expect(await retry('--program', randomUUID())).toMatchObject({ exitCode: 1 });
    for (const { id } of [wanted, ...others]) expect(await reload(id)).toMatchObject({ status: 'failed' });
    expect(await retry(...filters.flat())).toMatchObject({ exitCode: 0 });
    expect(await reload(wanted.id)).toMatchObject({ status: 'pending' });
    for (const { id } of others) expect(await reload(id)).toMatchObject({ status: 'failed' });
  });

  it('of everything takes what it can do something for, in batches of as many statements whatever is in them', async () => {
    const ready = await aRender('ready');
    const drain = async (batch: number): Promise<string[]> => {
      const seen: string[] = [];
      const options = { force: false, dryRun: false, cause: 'test', batch };
      const batches = retryRenders(database.db, { conditions: ['failed', 'waiting'] }, options);
      for await (const part of batches) seen.push(...part.map(({ render }) => render.id));
      return seen;
    };
    const statementsFor = async (renders: number, batch: number) => {
      const failed: string[] = [];
      for (let i = 0; i < renders; i++) failed.push((await aRender('failed')).id);
      return database.countStatements(async () => expect(await drain(batch)).toEqual([...failed].sort()));
    };
    const once = await statementsFor(1, 10);
    expect(await statementsFor(9, 10)).toBe(once);
    // Two full batches, and a look that finds no more.
    expect(await statementsFor(6, 3)).toBe(2 * once + 1);
    expect(await reload(ready.id)).toMatchObject({ status: 'ready' });
  });
});

describe('cancel', () => {
  it.each(['pending', 'waiting', 'rendering', 'transcoding'] as const)(
    'ends what is %s, and tells nobody',
    async (status) => {
      const made = await aRender(status);
      await database.db.insert(members).values({ orgId: made.orgId, subject: `m-${made.id}`, role: 'manager' });
      const before = await reload(made.id);
      expect(await cancel(made.id)).toMatchObject({
        exitCode: 0,
        stdout: expect.stringContaining('1 cancelled, 0 refused.'),
      });
      expect(await reload(made.id)).toMatchObject({
        status: 'failed',
        errorCode: 'cancelled',
        errorMessage: 'The video was cancelled.',
        generation: 0,
        leaseToken: null,
        leaseExpiresAt: null,
        notBefore: null,
      });
      const events = await eventsOf(made.id);
      expect(events.at(-1)).toMatchObject({ cause: 'bakehouse cancel', error: { code: 'cancelled' } });
      expect(historyViolations(events, { whole: true, row: await reload(made.id) })).toEqual([]);
      expect(
        await database.db
          .select()
          .from(notifications)
          .where(eq(notifications.recipient, `m-${made.id}`)),
      ).toEqual([]);
      if (before.leaseToken !== null)
        expect(await heartbeat(database.db, { id: made.id, token: before.leaseToken }, 60_000)).toBe(false);
    },
  );

  it('refuses what has ended', async () => {
    const [failed, ready] = [await aRender('failed'), await aRender('ready')];
    const result = await cancel(failed.id, ready.id);
    expect(result).toMatchObject({
      exitCode: 1,
      stdout: expect.stringMatching(/failed, refused[\s\S]*0 cancelled, 2 refused/),
    });
    expect(await cancel('--all')).toMatchObject({ exitCode: 1, stdout: 'No render matches.\n' });
  });

  it('is undone by a retry, or by a publish that needs the render', async () => {
    const [one, two] = [await aRender('rendering'), await aRender('transcoding')];
    await cancel('--all');
    await retry(one.id);
    expect(await reload(one.id)).toMatchObject({ status: 'pending', generation: 1, attempts: 0, errorCode: null });
    const { queued } = await publishProgram(database.db, { programId: two.programId, orgId: two.orgId, by: 'someone' });
    expect(queued).toMatchObject([{ id: two.id, generation: 1 }]);
  });

  it('gives up a video that hangs at Bunny, or a retry would wait for it anew; and none of a bake under way', async () => {
    const [transcoding, rendering] = [await aRender('transcoding'), await aRender('rendering')];
    await database.db
      .update(exerciseRenders)
      .set({ videoGuid: 'being-uploaded' })
      .where(eq(exerciseRenders.id, rendering.id));
    await cancel('--all');
    await retry('--all');
    const { masterSha256, ...hung } = await reload(transcoding.id);
    expect(hung).toMatchObject({ status: 'pending', videoGuid: null });
    expect(masterSha256).not.toBeNull();
    expect(await reload(rendering.id)).toMatchObject({ status: 'pending', videoGuid: 'being-uploaded' });
  });

  it('of many only says how many', async () => {
    const rows = await aRender('pending');
    await database.db.execute(sql`
      insert into exercise_renders (id, exercise_id, recipe_hash, language, recipe, fair_key, fair_tag)
      select gen_random_uuid(), exercise_id, lpad(to_hex(n), 64, '0'), language, recipe, fair_key, fair_tag
        from exercise_renders, generate_series(1, 450) as n`);
    expect(await cancel('--exercise', rows.exerciseId, '--dry-run')).toMatchObject({
      exitCode: 0,
      stdout: '     451  pending → failed\n451 would be cancelled, 0 refused.\n',
    });
    expect(await cancel('--exercise', rows.exerciseId)).toMatchObject({ exitCode: 0 });
    expect(await database.db.$count(exerciseRenders, eq(exerciseRenders.errorCode, 'cancelled'))).toBe(451);
  });

  it('does not touch what has moved on between the look and the move', async () => {
    const { id } = await aRender('transcoding');
    const { db } = database;
    // Between the two statements a webhook comes.
    let looks = 0;
    const between = new Proxy(db, {
      get: (target, name) => {
        if (name !== 'execute') return Reflect.get(target, name);
        return async (statement: never) => {
          looks += 1;
          if (looks === 2) await markReady(db, { id, videoGuid: `video-${id}`, cause: 'webhook' });
          return db.execute(statement);
        };
      },
    });
    const seen = [];
    for await (const part of cancelRenders(between, { ids: [id] }, { dryRun: false, cause: 'test' }))
      seen.push(...part);
    expect(seen).toMatchObject([{ to: null, note: 'has moved on meanwhile' }]);
    expect(await reload(id)).toMatchObject({ status: 'ready' });
  });
});

describe('bad input', () => {
  it.each([
    [['abc'], /Expects an id or a recipe hash, or the first 8 characters/],
    [['not-an-id-at-all'], /Expects an id or a recipe hash/],
    [["'; drop table"], /Expects an id or a recipe hash/],
    [['--status', 'done'], /Expects one of pending, /],
    [['--status', 'failed,'], /Expects one of pending, /],
    [['--code', 'no_such_code'], /Expects codes of our errors/],
    [['--program', '1'], /Expects an id \(a UUID\)/],
    [['--exercise', 'x'], /Expects an id \(a UUID\)/],
    [['--org', '%'], /Expects an id \(a UUID\)/],
    [['--older-than', '30'], /Expects a time such as/],
    [['--older-than', '-1h'], /Expects a time such as/],
    [['--older-than', '0m'], /Expects a time such as/],
    [['--older-than', '999999999d'], /Expects a time such as/],
    [['--nonsense'], /unknown option/],
    [['--status'], /argument missing/],
  ])('%j is refused with what is expected instead', async (args, message) => {
    const { id } = await aRender('failed');
    for (const run of [retry, cancel]) {
      const { exitCode, stderr } = await run(...args);
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(message);
    }
    expect(await reload(id)).toMatchObject({ status: 'failed' });
  });

  it('that says nothing is not taken for everything', async () => {
    const [failed, pending] = [await aRender('failed'), await aRender('pending')];
    for (const run of [retry, cancel])
      for (const args of [[], ['--dry-run'], ['--json']])
        expect(await run(...args)).toMatchObject({ exitCode: 1, stdout: '', stderr: expect.stringContaining('--all') });
    expect(await retry('--force')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('--all') });
    expect(await reload(failed.id)).toMatchObject({ status: 'failed' });
    expect(await reload(pending.id)).toMatchObject({ status: 'pending' });
  });

  it('such as no installation, or a database that is not there, is told', async () => {
    const dataDir = await makeTempDir();
    expect(await runCommand(retryCommand(), ['--all', '--data-dir', dataDir])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('bakehouse up'),
    });
    const gone = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' };
    expect(await runCommand(cancelCommand(), ['--all'], gone)).toMatchObject({ exitCode: 1 });
  });
});
