import { isTerminal } from '../../../lib/domain/render-states.ts';
import type { Action } from '../script.ts';
import { type Check, histories, type Violation } from './evidence.ts';

/** Whatever was promised with a 202 is in Postgres, and every render came to an end. */
export const nothingLost: Check = (evidence) => {
  const programs = new Map(evidence.programs.map((program) => [program.id, program]));
  const known = new Set(evidence.renders.map((render) => render.id));
  const lost = (detail: string, renderId?: string): Violation => ({
    invariant: 'nothing-lost',
    detail,
    ...(renderId !== undefined && { renderId }),
  });
  const promised = evidence.answers.flatMap((answer): Violation[] => {
    const name = `the publish of programme ${answer.programId ?? '(never made)'} by ${answer.by}`;
    if (answer.counts === null || answer.programId === null) return [lost(`${name} got no 202: ${answer.refusal}`)];
    const { total, ready, queued, inProgress, failed } = answer.counts;
    const program = programs.get(answer.programId);
    const kept = new Set(program?.renderIds);
    if (program?.status !== 'published') return [lost(`${name} was answered 202, the row says ${program?.status}`)];
    if (kept.has(null)) return [lost(`${name} was answered 202, an item of it has no render`)];
    if (kept.size !== total) return [lost(`${name} promised ${total} renders, its items have ${kept.size}`)];
    if (ready + queued + inProgress + failed !== total)
      return [lost(`${name} was answered with counts that do not add up: ${JSON.stringify(answer.counts)}`)];
    return [...kept].flatMap((id) => (id !== null && !known.has(id) ? [lost(`${name}: no render ${id}`)] : []));
  });
  const unfinished = evidence.renders.flatMap((render) =>
    isTerminal(render.status) ? [] : [lost(`is still ${render.status}`, render.id)],
  );
  return [...promised, ...unfinished];
};

/** What of the script explains that a render failed with this code. */
const EXPLAINED: Record<string, (action: Action) => boolean> = {
  transcode_truncated: (action) => action.kind === 'bunny' && action.what === 'truncatedFinish',
  transcode_missing: (action) => action.kind === 'bunny' && action.what === 'missingVideo',
  lease_expired: ({ kind }) => kind === 'kill' || kind === 'wedge' || kind === 'postgres-restart',
  media_unavailable: (action) => action.kind === 'kill' || action.kind === 'less-media',
  media_silent: (action) => action.kind === 'kill',
  storage_failed: ({ kind }) => kind === 'bunny' || kind === 'disk-full',
  asset_unavailable: ({ kind }) => kind === 'bunny',
  bunny_unavailable: ({ kind }) => kind === 'bunny',
  ffmpeg_failed: ({ kind }) => kind === 'disk-full',
  internal: ({ kind }) => kind === 'disk-full',
};
/** One strike of these is enough: Bunny's verdict on the video, not a failure that trying again may cure. */
const AT_ONCE = new Set(['transcode_truncated']);

/** A dead-letter has a cause in the script, and all attempts were used up unless trying again could not have helped. */
export const failedExplained: Check = (evidence) => {
  const struck = evidence.incidents.filter((incident) => incident.struck).map((incident) => incident.action);
  return histories(evidence).flatMap(({ render, events }) =>
    events
      .filter((event) => event.to === 'failed')
      .flatMap((event): Violation[] => {
        const code = event.errorCode ?? '(none)';
        const wrong = (detail: string): Violation => ({ invariant: 'failed-explained', renderId: render.id, detail });
        if (!struck.some((action) => EXPLAINED[code]?.(action) ?? false))
          return [wrong(`failed with ${code}, which nothing in the script explains`)];
        return AT_ONCE.has(code) || event.attempt >= render.maxAttempts
          ? []
          : [wrong(`failed with ${code} after ${event.attempt} of ${render.maxAttempts} attempts`)];
      }),
  );
};

/** After the faults are over every failed render has been published once more: in the end all of them play. */
export const allReady: Check = (evidence) =>
  evidence.renders.flatMap((render): Violation[] =>
    render.status === 'failed'
      ? [
          {
            invariant: 'nothing-lost',
            renderId: render.id,
            detail: `failed (${render.errorCode}) with all faults over`,
          },
        ]
      : [],
  );
