import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import { replayCommand } from '../../../apps/cli/commands/replay.ts';
import {
  dueWebhooks,
  markWebhookApplied,
  postponeWebhook,
  storeWebhookEvent,
  type WebhookEvent,
} from '../../../lib/db/webhooks.ts';
import { runCommand } from '../../support/cli.ts';
import { useTestDatabase } from '../../support/test-db.ts';

const database = useTestDatabase();
beforeEach(() => database.db.execute(sql`truncate webhook_events`));

const replay = (...args: string[]) => runCommand(replayCommand(), args, { DATABASE_URL: database.url });
const due = async () => (await dueWebhooks(database.db, 10_000)).map(({ id }) => id).sort();

async function store(videoGuid: string, state: 'applied' | 'postponed'): Promise<string> {
  const { db } = database;
  const { id } = await storeWebhookEvent(db, { videoGuid, libraryId: 1, status: 3, body: '{}', verifiedBy: 'token' });
  if (state === 'applied') await markWebhookApplied(db, id, 'settled-already');
  else await postponeWebhook(db, id, { outcome: 'unknown-video', delayMs: 600_000 });
  return id;
}

describe('replay', () => {
  it('makes a named event due again, applied or not, with its tries forgotten', async () => {
    const [applied, postponed] = [await store('a', 'applied'), await store('b', 'postponed')];
    await store('c', 'applied');
    expect(await due()).toEqual([]);
    const { exitCode, stdout } = await replay(applied, postponed);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/was applied: settled-already\n.*was not applied: unknown-video\n2 are due again/);
    expect(await due()).toEqual([applied, postponed].sort());
    expect(await dueWebhooks(database.db, 10)).toEqual(
      expect.arrayContaining([expect.objectContaining({ id: postponed, tries: 0, outcome: null })]),
    );
  });

  it('takes what all of the filters select and nothing else', async () => {
    const [applied, postponed] = [await store('a', 'applied'), await store('a', 'postponed')];
    const old = await store('b', 'postponed');
    await database.db.execute(
      sql`update webhook_events set received_at = now() - interval '3 hours' where id = ${old}`,
    );
    const matches = async (...args: string[]) =>
      (JSON.parse((await replay(...args, '--dry-run', '--json')).stdout) as { events: WebhookEvent[] }).events
        .map(({ id }) => id)
        .sort();
    expect(await matches('--video', 'a')).toEqual([applied, postponed].sort());
    expect(await matches('--unapplied')).toEqual([postponed, old].sort());
    expect(await matches('--since', '2h')).toEqual([applied, postponed].sort());
    expect(await matches('--since', '2h', '--unapplied', '--video', 'a', applied, postponed)).toEqual([postponed]);
    expect(await matches('--video', 'nobody')).toEqual([]);
    expect(await due()).toEqual([]);
    expect(await replay('--video', 'nobody')).toMatchObject({ exitCode: 1, stdout: 'No webhook matches.\n' });
  });

  it('of many takes all, and only says how many', async () => {
    await database.db.execute(sql`
      insert into webhook_events (id, video_guid, library_id, status, body, verified_by, applied_at)
      select gen_random_uuid(), 'many', 1, 3, '{}', 'token', now() from generate_series(1, 1100)`);
    expect(await replay('--video', 'many')).toMatchObject({
      exitCode: 0,
      stdout: '1100 are due again: the next sweep applies them.\n',
    });
    expect(await due()).toHaveLength(1_100);
  });

  it('does nothing at all where one of the ids is unknown', async () => {
    const [known, unknown] = [await store('a', 'applied'), randomUUID()];
    expect(await replay(known, unknown)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(unknown) });
    expect(await due()).toEqual([]);
  });

  it.each([
    [[], /Say which webhooks/],
    [['--dry-run'], /Say which webhooks/],
    [['an-event'], /Expects an id \(a UUID\)/],
    [['--video', 'a b'], /Expects the guid/],
    [['--video', ''], /Expects the guid/],
    [['--since', 'yesterday'], /Expects a time such as/],
    [['--since', '0h'], /Expects a time such as/],
    [['--all'], /unknown option/],
  ])('refuses %j and says what is expected', async (args, message) => {
    await store('a', 'applied');
    expect(await replay(...args)).toMatchObject({ exitCode: 1, stdout: '', stderr: expect.stringMatching(message) });
    expect(await due()).toEqual([]);
  });
});
