import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Db } from '../../../lib/db/client.ts';
import { listDeliveries } from '../../../lib/db/deliveries.ts';
import { listExercises } from '../../../lib/db/exercises.ts';
import { listNotifications } from '../../../lib/db/notifications.ts';
import { listPrograms } from '../../../lib/db/programs.ts';
import { listAssignedPrograms } from '../../../lib/db/readiness.ts';
import * as schema from '../../../lib/db/schema/index.ts';
import { listSessions } from '../../../lib/db/session-library.ts';
import { listEndpoints } from '../../../lib/db/webhook-endpoints.ts';
import { useTestDatabase } from '../../support/test-db.ts';

const database = useTestDatabase();

const ROWS = 40_000;
const LIMIT = 20;
/** A page and the row that tells of a next one, of two tables, and for each a few that belong to it. */
const MOST_READ = 8 * (LIMIT + 1);

const uuid = (kind: string, n: number) => `01900000-${kind}-7000-8000-${n.toString(16).padStart(12, '0')}`;
/** The same in SQL, of the row's `n`. */
const id = (kind: string, n = sql`n`) =>
  sql`('01900000-' || ${kind}::text || '-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;
/** Half of all is one organisation's; the other half is spread over many. */
const orgOf = sql`case when n % 2 = 0 then 0 else n % 1000 end`;
const [BIG, SMALL] = [uuid('0000', 0), uuid('0000', 7)];

const SEED = [
  sql`insert into organisations (id, name) select ${id('0000')}, 'A' from generate_series(0, 999) n`,
  sql`insert into exercises (id, tier, org_id, names, created_by)
      select ${id('0001')}, case when n % 1000 = 0 then 'platform' else 'org' end, case when n % 1000 > 0 then ${id('0000', orgOf)} end, '{}', 'x'
        from generate_series(1, ${ROWS}::int) n`,
  sql`insert into exercise_sources (exercise_id, sha256, bytes, duration_ms, report, uploaded_by, id, created_at)
      select ${id('0001')}, repeat('a', 64), 1, 1000, '{}', 'x', gen_random_uuid(), now() - n * interval '1 s'
        from generate_series(1, ${ROWS}::int) n`,
  sql`insert into programs (id, org_id, title, language, created_by, status, published_at)
      select ${id('0002')}, ${id('0000', orgOf)}, 'P', 'en', 'x', case when n % 4 = 0 then 'draft' else 'published' end, now()
        from generate_series(1, ${ROWS}::int) n`,
  sql`insert into sessions (id, org_id, title, language) select ${id('0003')}, ${id('0000', orgOf)}, 'S', 'en' from generate_series(1, ${ROWS}::int) n`,
  // Newer than those that stand alone: who looks for these from the newest on meets all of the others first.
  sql`insert into sessions (id, org_id, title, program_id) select ${id('0004')}, ${id('0000', orgOf)}, 'S', ${id('0002')} from generate_series(1, ${ROWS}::int) n`,
  sql`insert into assignments (id, program_id, patient_id, assigned_by)
      select ${id('0005')}, ${id('0002')}, 'patient-' || n % 200, 'x' from generate_series(1, ${ROWS}::int) n`,
  sql`insert into notifications (id, recipient, org_id, kind, payload, created_at, read_at)
      select ${id('0006')}, 'manager-' || n % 20, ${id('0000', sql`0`)}, 'x', '{}', now() - n * interval '1 s', case when n % 3 = 0 then now() end
        from generate_series(1, ${ROWS}::int) n`,
  sql`insert into webhook_endpoints (id, org_id, url, events, created_by)
      select ${id('0007')}, ${id('0000', orgOf)}, 'https://a.example', '{}', 'x' from generate_series(1, ${ROWS}::int) n`,
  sql`insert into webhook_deliveries (id, endpoint_id, type, data, state, created_at)
      select ${id('0008')}, ${id('0007', sql`1 + n % 2 * n`)}, 'program.ready', '{}', case when n % 3 = 0 then 'failed' else 'delivered' end, now() - n * interval '1 s'
        from generate_series(1, ${ROWS}::int) n`,
  sql`analyze`,
];

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: Plan[];
}

let pool: Pool;
let db: Db;
let statements: { text: string; params: unknown[] }[] = [];

beforeAll(async () => {
  for (const statement of SEED) await database.db.execute(statement);
  pool = new Pool({ connectionString: database.url, max: 1 });
  const logger = { logQuery: (text: string, params: unknown[]) => void statements.push({ text, params }) };
  db = drizzle(pool, { schema, casing: 'snake_case', logger });
});
afterAll(() => pool.end());

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

/** What Postgres reads of the tables for what `list` asks, node by node, with rows that are only looked at and dropped. */
async function readsOf(list: () => Promise<{ items: unknown[] }>) {
  statements = [];
  const { items } = await list();
  expect(items).toHaveLength(LIMIT);
  const plans = await Promise.all(
    statements.map(async ({ text, params }) => {
      const { rows } = await pool.query(`explain (analyze, format json) ${text}`, params);
      return (rows[0]['QUERY PLAN'] as { Plan: Plan }[])[0]!.Plan;
    }),
  );
  return plans.flatMap(nodesOf).flatMap((node) => {
    const {
      'Node Type': type,
      'Relation Name': table,
      'Actual Loops': loops,
      'Rows Removed by Filter': removed = 0,
    } = node;
    return table === undefined && type !== 'Sort'
      ? []
      : [{ type, table, rows: (node['Actual Rows'] + removed) * loops }];
  });
}

const MIDDLE = ROWS / 2;
const LISTS: [string, string, (page: { limit: number; after: string | null }) => Promise<{ items: unknown[] }>][] = [
  ...[BIG, SMALL, null].flatMap((orgId): typeof LISTS => [
    ['exercises', '0001', (page) => listExercises(db, { orgId, ...page })],
    ['programmes', '0002', (page) => listPrograms(db, { orgId, ...page })],
    ['sessions', '0003', (page) => listSessions(db, { orgId, ...page })],
    ['webhook endpoints', '0007', (page) => listEndpoints(db, { orgId, ...page })],
  ]),
  ...[true, false].map((unread): (typeof LISTS)[number] => [
    unread ? 'unread notifications' : 'notifications',
    '0006',
    (page) => listNotifications(db, { recipient: { sub: 'manager-5', org: BIG }, unread, ...page }),
  ]),
  ...(['failed', null] as const).map((state): (typeof LISTS)[number] => [
    state ? 'failed webhook deliveries' : 'webhook deliveries',
    '0008',
    (page) => listDeliveries(db, { id: uuid('0007', 1), orgId: null }, { state, ...page }),
  ]),
  [
    'a patient’s programmes',
    '0005',
    (page) => listAssignedPrograms(db, { orgId: BIG, patientId: 'patient-6', ...page }),
  ],
];

describe('a page of a list, of tables of many rows', () => {
  it.each(LISTS)('of %s is read from an index, in its order', async (_, kind, list) => {
    for (const after of [null, uuid(kind, MIDDLE)]) {
      const reads = await readsOf(() => list({ limit: LIMIT, after }));
      expect(reads.filter(({ type, rows }) => rows > (type === 'Seq Scan' ? 0 : MOST_READ))).toEqual([]);
    }
  });
});
