import type { PipelineConfig } from '../config/pipeline.ts';
import type { Executor } from '../db/client.ts';
import { type Broken, brokenInvariants, readHistories } from '../db/invariants.ts';
import { countInbox, countUnderWay, listUnderWay, type UnderWay, type UnderWayCount } from '../db/under-way.ts';
import { type HistoryViolation, historyViolations } from '../domain/history.ts';

export interface PipelineReport {
  /** Nothing is overdue and nothing violated. */
  ok: boolean;
  /** Renders that have not ended: the counts are of all of them, the list is cut at the limit, most urgent first. */
  underWay: { total: number; overdue: number; counts: UnderWayCount[]; renders: UnderWay[] };
  /** Bunny's webhooks that are stored and not applied. */
  inbox: { unapplied: number; overdue: number };
  /** Rows that break what must always hold. */
  broken: Broken[];
  /** Histories that cannot have come about by the table of moves. */
  history: { renders: number; violated: number; violations: ({ renderId: string } & HistoryViolation)[] };
}

/** A deadline passed by so many sweeps, or by less than ten seconds, only tells that a sweep is about to come. */
const GRACE_SWEEPS = 5;
const LEAST_GRACE_MS = 10_000;

const HISTORIES_AT_ONCE = 500;

export interface ExamineOptions {
  config: Pick<PipelineConfig, 'SWEEP_MS' | 'RENDER_REDISPATCH_MS' | 'RENDER_QUEUE_MAX_MIRRORED'>;
  /** At most so many of each are named; the totals are always whole. */
  limit: number;
}

/** Looks at every render: who has it, until when, and whether what must always hold does hold. Reads Postgres only. */
export async function examinePipeline(db: Executor, { config, limit }: ExamineOptions): Promise<PipelineReport> {
  const graceMs = Math.max(LEAST_GRACE_MS, GRACE_SWEEPS * config.SWEEP_MS);
  const times = { ...config, graceMs };
  const counts = await countUnderWay(db, times);
  const sum = (of: (each: UnderWayCount) => number) => counts.reduce((total, each) => total + of(each), 0);
  const underWay = {
    total: sum(({ count }) => count),
    overdue: sum(({ overdue }) => overdue),
    counts,
    renders: await listUnderWay(db, times, limit),
  };
  const inbox = await countInbox(db, graceMs);
  const broken = await brokenInvariants(db, limit);
  const history = await examineHistories(db, limit);
  const ok = underWay.overdue === 0 && inbox.overdue === 0 && broken.length === 0 && history.violated === 0;
  return { ok, underWay, inbox, broken, history };
}

async function examineHistories(db: Executor, limit: number): Promise<PipelineReport['history']> {
  const report: PipelineReport['history'] = { renders: 0, violated: 0, violations: [] };
  for (let after: string | null = null; ; ) {
    const page = await readHistories(db, { after, limit: HISTORIES_AT_ONCE });
    for (const { id, events, whole, ...row } of page) {
      const violations = historyViolations(events, { whole, row });
      report.renders += 1;
      if (violations.length > 0) report.violated += 1;
      const room = limit - report.violations.length;
      report.violations.push(...violations.slice(0, room).map((violation) => ({ renderId: id, ...violation })));
    }
    after = page.at(-1)?.id ?? null;
    if (page.length < HISTORIES_AT_ONCE) return report;
  }
}
