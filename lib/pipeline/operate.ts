import type { Db } from '../db/client.ts';
import {
  cancelByOperator,
  endWaits,
  type RenderFilter,
  requeueByOperator,
  type SelectedRender,
  selectRenders,
} from '../db/operate.ts';
import { isTerminal, type RenderStatus } from '../domain/render-states.ts';
import { doubtsVideo } from '../domain/transcode.ts';

/** What an operator's command did, or would do, with a render. */
export interface Operated {
  render: SelectedRender;
  /** Its status after it; null where the command is refused for this render, and `note` says why. */
  to: RenderStatus | null;
  note: string | null;
}

export interface OperateOptions {
  /** Only say what would be done. */
  dryRun: boolean;
  /** Renders read and changed at once: what bounds how long rows are locked. */
  batch?: number;
  /** Told of the renders that were changed, after each batch's commit. */
  onChanged?: (renderIds: readonly string[]) => void;
}

const BATCH = 500;
const MOVED_ON = 'has moved on meanwhile';

const accept = (to: RenderStatus, note: string | null = null) => ({ to, note });
const refuse = (note: string) => ({ to: null, note });
type Decision = ReturnType<typeof accept> | ReturnType<typeof refuse>;

interface Command {
  decide(render: SelectedRender): Decision;
  /** Answers the ids of those that it changed. */
  apply(renders: readonly SelectedRender[]): Promise<string[]>;
}

/** Batch by batch over everything selected: one statement to read, and a constant number of them to write. */
async function* operate(
  db: Db,
  filter: RenderFilter,
  { dryRun, batch = BATCH, onChanged }: OperateOptions,
  { decide, apply }: Command,
): AsyncGenerator<Operated[]> {
  let after: string | null = null;
  for (;;) {
    const renders: SelectedRender[] = await selectRenders(db, filter, { after, limit: batch });
    const decided = renders.map((render) => ({ render, ...decide(render) }));
    const accepted = decided.filter(({ to }) => to !== null).map(({ render }) => render);
    const changed = new Set(dryRun || accepted.length === 0 ? accepted.map(({ id }) => id) : await apply(accepted));
    if (!dryRun && changed.size > 0) onChanged?.([...changed]);
    if (decided.length > 0)
      yield decided.map((each) =>
        each.to === null || changed.has(each.render.id) ? each : { ...each, ...refuse(MOVED_ON) },
      );
    after = renders.at(-1)?.id ?? null;
    if (renders.length < batch) return;
  }
}

/**
 * Asks for renders again: failed ones, ready ones only where `force` says that they are to be made anew, and those that
 * wait for a later attempt at once. The sweep tells the queue.
 */
export function retryRenders(
  db: Db,
  filter: RenderFilter,
  options: OperateOptions & { force: boolean; cause: string },
): AsyncGenerator<Operated[]> {
  const idsOf = (renders: readonly SelectedRender[], which: (render: SelectedRender) => boolean) =>
    renders.filter(which).map(({ id }) => id);
  return operate(db, filter, options, {
    decide: ({ status, waits }) => {
      switch (status) {
        case 'failed':
          return accept('pending');
        case 'ready':
          return options.force ? accept('pending') : refuse('is ready: --force makes it anew');
        case 'pending':
          return waits ? accept('pending', 'due now') : refuse('waits for nothing but its turn');
        case 'rendering':
          return refuse('is being baked: cancel it first');
        case 'transcoding':
          return refuse('is at Bunny: cancel it first');
      }
    },
    apply: async (renders) => [
      ...(await requeueByOperator(
        db,
        {
          failed: idsOf(renders, (render) => render.status === 'failed' && !doubtsVideo(render.errorCode)),
          failedVideo: idsOf(renders, (render) => render.status === 'failed' && doubtsVideo(render.errorCode)),
          ready: idsOf(renders, ({ status }) => status === 'ready'),
        },
        options.cause,
      )),
      ...(await endWaits(
        db,
        idsOf(renders, ({ status }) => status === 'pending'),
      )),
    ],
  });
}

/** Ends renders that are under way; a worker that bakes one stops within seconds. */
export function cancelRenders(
  db: Db,
  filter: RenderFilter,
  options: OperateOptions & { cause: string },
): AsyncGenerator<Operated[]> {
  return operate(db, filter, options, {
    decide: ({ status }) => (isTerminal(status) ? refuse(`is ${status} already`) : accept('failed')),
    apply: (renders) =>
      cancelByOperator(
        db,
        renders.map(({ id }) => id),
        options.cause,
      ),
  });
}
