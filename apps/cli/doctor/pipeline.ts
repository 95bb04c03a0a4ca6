import { createLogger } from '../../../lib/log.ts';
import { examinePipeline, type PipelineReport } from '../../../lib/pipeline/examine.ts';
import { openQueues, withDeadline } from '../../../lib/queue/queues.ts';
import { onDatabase } from '../operate/on-database.ts';
import type { Installation } from '../stack/running.ts';

/** Jobs by state, or null where Redis is not known or does not answer: then only the rows are told. */
export type QueueDepths = Record<'renders' | 'webhooks', Record<string, number>> | null;

export interface PipelineFindings extends PipelineReport {
  queues: QueueDepths;
}

const REDIS_DEADLINE_MS = 2_000;

/** Looks at the rows of the installation, and at the depth of its queues. */
export const examineInstallation = (options: {
  dataDir: string | undefined;
  limit: number;
}): Promise<PipelineFindings> =>
  onDatabase(options.dataDir, async (db, { installation: { pipeline, redis } }) => ({
    ...(await examinePipeline(db, { config: pipeline, limit: options.limit })),
    queues: redis && (await depthsOf(redis)),
  }));

async function depthsOf(redis: NonNullable<Installation['redis']>): Promise<QueueDepths> {
  const queues = openQueues({ redisUrl: redis.url, prefix: redis.prefix }, createLogger('doctor', 'silent'));
  try {
    const states = ['active', 'waiting', 'prioritized', 'delayed', 'failed'] as const;
    const counts = Promise.all([queues.renders.getJobCounts(...states), queues.webhooks.getJobCounts(...states)]);
    const [renders, webhooks] = await withDeadline(counts, REDIS_DEADLINE_MS);
    return { renders, webhooks };
  } catch {
    return null;
  } finally {
    await queues.close();
  }
}

const OWNERS: Record<PipelineReport['underWay']['renders'][number]['owner'], string> = {
  backoff: 'waits for backoff',
  turn: 'waits for its turn',
  mirror: 'not in the queue yet',
  queue: 'queue',
  worker: 'worker',
  bunny: 'Bunny',
};

/** The findings in lines for a person. */
export function tellPipeline({ ok, underWay, inbox, broken, history, queues }: PipelineFindings, now: Date): string {
  const lines: string[] = [];
  for (const render of underWay.renders) {
    const { id, exerciseId, status, owner, worker, ageMs, deadline, sweeper, overdue } = render;
    const until = deadline === null ? 'no deadline' : `${sweeper} ${relative(deadline.getTime() - now.getTime())}`;
    const who = worker === null ? OWNERS[owner] : `${OWNERS[owner]} ${worker}`;
    lines.push(
      `${overdue ? 'OVERDUE' : '       '} ${id}  exercise ${exerciseId}  ${status}, ${who}, for ${span(ageMs)}; ${until}`,
    );
  }
  if (underWay.total > underWay.renders.length)
    lines.push(`        … and ${underWay.total - underWay.renders.length} more`);
  lines.push(`under way  ${underWay.total} renders, ${underWay.overdue} overdue`);
  for (const { status, owner, count, overdue } of underWay.counts)
    lines.push(
      `           ${String(count).padStart(6)} ${status}, ${OWNERS[owner]}${overdue > 0 ? `, ${overdue} overdue` : ''}`,
    );
  lines.push(`inbox      ${inbox.unapplied} webhooks not applied yet, ${inbox.overdue} overdue`);
  for (const name of ['renders', 'webhooks'] as const)
    lines.push(`queue      ${name}: ${queues ? depths(queues[name]) : 'Redis was not asked or did not answer'}`);
  for (const { name, sentence, count, ids } of broken) {
    lines.push(`VIOLATED   ${name}: ${sentence} ${count} do not:`, ...ids.map((id) => `           ${id}`));
    if (count > ids.length) lines.push(`           … and ${count - ids.length} more`);
  }
  for (const { renderId, rule, sentence } of history.violations)
    lines.push(`VIOLATED   history-${rule}: ${renderId}: ${sentence}`);
  lines.push(`history    of ${history.renders} renders, ${history.violated} violated`);
  lines.push(ok ? 'Nothing is overdue, nothing violated.' : 'Something is overdue or violated.');
  return `${lines.join('\n')}\n`;
}

const depths = (counts: Record<string, number>) =>
  Object.entries(counts)
    .map(([state, count]) => `${count} ${state}`)
    .join(', ');

const relative = (ms: number) => (ms < 0 ? `was due ${span(-ms)} ago` : `in ${span(ms)}`);

/** Coarse, for people: the two largest units are plenty. */
function span(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} d`;
}
