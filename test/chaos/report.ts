import type { EventRow, Evidence, Violation } from './checker/evidence.ts';
import { countMoves, histories } from './checker/evidence.ts';
import { turnsOf } from './checker/fairness.ts';
import { grouped } from './checker/grouped.ts';
import { COUNTED } from './checker/history.ts';
import type { ChaosOptions, ChaosRun } from './run.ts';
import { sayAction } from './script.ts';

/** What a run was like, beside whether it held. Times in milliseconds. */
export interface Figures extends ChaosOptions {
  durationMs: number;
  /** What struck, by its kind. */
  faults: Record<string, number>;
  publishes: number;
  longestPublishMs: number;
  bakes: number;
  /** Uploads beyond one for each generation, and videos with bytes beyond one for each render. */
  duplicatedBakes: number;
  /** Videos without a row, which the reconcile deleted. */
  orphans: number;
  retries: number;
  /** By their cause. */
  handBacks: Record<string, number>;
  leaseExpiries: number;
  transcodesLost: number;
  failed: number;
  tooManyRequests: number;
  webhooks: number;
  /** From the publish to the first `ready`. */
  longestWaitMs: number;
  /** From the death of a worker to the next claim of what it held. */
  recoveryMs: { median: number; longest: number; count: number };
  /** Single renders, the first claims of others that counted against them, and those that a disturbance excused. */
  fairness: { singles: number; counted: number; excused: number; longestWaitMs: number };
  readinessAnswers: number;
}

export function figuresOf(
  options: ChaosOptions,
  { evidence, refused, orphans }: ChaosRun,
  durationMs: number,
): Figures {
  const { answers, events, incidents, inbox, polls, renders, videos } = evidence;
  const count = (cause: string) => events.filter((event) => event.cause === cause).length;
  const retries = count('retry');
  const leaseExpiries = events.filter(({ cause, from }) => from === 'rendering' && cause === 'lease-expired').length;
  const bakes = countMoves(events, 'rendering', 'transcoding');
  const lost = countMoves(events, 'transcoding', 'pending');
  const generations = sum(renders.map((render) => render.generation + 1));
  const withBytes = videos.before.filter((video) => video.state !== 'created').length;
  const turns = turnsOf(evidence);
  const recoveries = recoveriesOf(evidence);
  const struck = incidents.filter((incident) => incident.struck);
  return {
    ...options,
    durationMs,
    faults: tally(struck.map(({ action }) => faultName(action))),
    publishes: answers.filter((answer) => answer.counts !== null).length,
    longestPublishMs: highest(answers.map((answer) => answer.answeredAt - answer.askedAt)),
    bakes,
    duplicatedBakes: Math.max(0, bakes - generations - lost) + Math.max(0, withBytes - renders.length),
    orphans,
    retries,
    handBacks: tally(
      events
        .filter(({ from, to, cause }) => from === 'rendering' && to === 'pending' && !COUNTED.has(cause))
        .map(({ cause }) => cause),
    ),
    leaseExpiries,
    transcodesLost: lost,
    failed: events.filter((event) => event.to === 'failed').length,
    tooManyRequests: refused + count('media_busy'),
    webhooks: inbox.length,
    longestWaitMs: highest(histories(evidence).map(({ events: own }) => waitOf(own))),
    recoveryMs: { median: median(recoveries), longest: highest(recoveries), count: recoveries.length },
    fairness: {
      singles: turns.length,
      counted: sum(turns.flatMap((turn) => [...turn.overtaken.values()])),
      excused: sum(turns.map((turn) => turn.excused)),
      longestWaitMs: highest(turns.map((turn) => turn.waitedMs)),
    },
    readinessAnswers: polls.length,
  };
}

const faultName = (action: Parameters<typeof sayAction>[0]) =>
  action.kind === 'kill'
    ? `${action.signal} ${action.target.replace(/-\d+$/, '')}`
    : action.kind === 'bunny'
      ? action.what
      : action.kind;

const tally = (names: readonly string[]) =>
  Object.fromEntries(
    [...grouped(names, (name) => name)]
      .map(([name, all]) => [name, all.length] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

const highest = (values: readonly number[]) => values.reduce((most, value) => Math.max(most, value), 0);

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

function waitOf(events: readonly EventRow[]): number {
  const ready = events.find((event) => event.to === 'ready');
  return ready && events[0] ? ready.at - events[0].at : 0;
}

function recoveriesOf({ incidents, events }: Evidence): number[] {
  return incidents
    .filter(({ action, struck }) => struck && action.kind === 'kill')
    .flatMap(({ until, held }) =>
      held.flatMap((renderId) => {
        const next = events.find((each) => each.renderId === renderId && each.to === 'rendering' && each.at > until);
        return next ? [next.at - until] : [];
      }),
    );
}

const list = (counts: Record<string, number>) =>
  Object.entries(counts)
    .map(([name, number]) => `${name} ${number}`)
    .join(' · ');
const inBrackets = (counts: Record<string, number>) => (Object.keys(counts).length > 0 ? ` (${list(counts)})` : '');

const s = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

/** The figures for a person. */
export function sayFigures(figures: Figures): string {
  const { fairness, recoveryMs } = figures;
  return [
    `went wrong      ${list(figures.faults)}`,
    `publishes       ${figures.publishes} answered 202, the longest after ${s(figures.longestPublishMs)}`,
    `bakes           ${figures.bakes} for ${figures.renders} renders, ${figures.duplicatedBakes} of them doubled; ${figures.orphans} videos without a row deleted by reconcile`,
    `attempts        ${figures.retries} retried · ${sum(Object.values(figures.handBacks))} handed back${inBrackets(figures.handBacks)} · ${figures.leaseExpiries} leases expired · ${figures.transcodesLost} transcodes lost · ${figures.failed} failed, and published again`,
    `pressure        ${figures.tooManyRequests} times “too many requests”`,
    `waits           longest from publish to ready ${s(figures.longestWaitMs)}`,
    `recovery        ${recoveryMs.count} renders of killed workers claimed again after ${s(recoveryMs.median)} (median), ${s(recoveryMs.longest)} (longest)`,
    `fairness        ${fairness.singles} single renders let ${fairness.counted} others go first, and ${fairness.excused} in disturbed moments; longest wait for a claim ${s(fairness.longestWaitMs)}`,
    `heard           ${figures.webhooks} webhooks stored · ${figures.readinessAnswers} readiness answers`,
    `took            ${s(figures.durationMs)}`,
  ].join('\n');
}

const MOST_HISTORIES = 10;

/** What did not hold, each with its render's history and what was going wrong meanwhile. */
export function sayViolations(violations: readonly Violation[], evidence: Evidence): string {
  const known = new Map(histories(evidence).map((each) => [each.render.id, each]));
  const lines = violations.map(
    ({ invariant, renderId, detail }) => `VIOLATED ${invariant}: ${renderId ?? ''} ${detail}`,
  );
  const ids = new Set(violations.flatMap(({ renderId }) => renderId ?? []));
  for (const id of [...ids].slice(0, MOST_HISTORIES)) {
    const found = known.get(id);
    if (found)
      lines.push(
        '',
        `render ${id}, recipe ${found.render.recipeHash}, video ${found.render.videoGuid}`,
        ...tell(found.events, evidence),
      );
  }
  return lines.join('\n');
}

function tell(events: readonly EventRow[], { incidents }: Evidence): string[] {
  const [first, last] = [events[0]?.at ?? 0, events.at(-1)?.at ?? 0];
  const moves = events.map((event) => ({
    at: event.at,
    text: `${event.from ?? 'nothing'} → ${event.to}  ${event.cause}, generation ${event.generation}, attempt ${event.attempt}${event.leaseToken ? `, token ${event.leaseToken.slice(0, 8)}` : ''}${event.errorCode ? `, ${event.errorCode}` : ''}`,
  }));
  const meanwhile = incidents
    .filter(({ from, until, struck }) => struck && until >= first && from <= last)
    .map(({ from, action }) => ({ at: from, text: `    ${sayAction(action)}` }));
  return [...moves, ...meanwhile]
    .sort((a, b) => a.at - b.at)
    .map(({ at, text }) => `  ${new Date(at).toISOString()}  ${text}`);
}
