import { Argument, Command, InvalidArgumentError } from 'commander';
import type { Db } from '../../../lib/db/client.ts';
import { replayWebhooks, selectWebhooks, type WebhookEvent, type WebhookFilter } from '../../../lib/db/webhooks.ts';
import { Refusal } from '../failure.ts';
import { DATA_DIR_OPTION, onDatabase } from '../operate/on-database.ts';
import { duration, uuid } from '../operate/parse.ts';

interface Options {
  video?: string;
  unapplied?: boolean;
  since?: number;
  dryRun?: boolean;
  json?: boolean;
  dataDir?: string;
}

const BATCH = 500;
/** Events told one by one; of more, only how many. */
const MOST_LINES = 50;

const guid = (text: string) => {
  // As the edge takes them.
  if (!/^[!-~]{1,100}$/.test(text)) throw new InvalidArgumentError('Expects the guid of a video at Bunny.');
  return text;
};

export const replayCommand = () =>
  new Command('replay')
    .description('have the workers apply stored webhooks of Bunny again, as if they had just come')
    .addArgument(
      new Argument('[events...]', 'ids of webhook events').argParser((text: string, before: string[] = []) => [
        ...before,
        uuid(text),
      ]),
    )
    .option('--video <guid>', 'those that tell of this video', guid)
    .option('--unapplied', 'those that are not applied yet, whenever they would be tried next')
    .option('--since <time>', 'those that came in the last 45s, 30m, 2h or 1d', duration)
    .option('--dry-run', 'only say what would be done')
    .option('--json', 'as one line of JSON')
    .option(...DATA_DIR_OPTION)
    .addHelpText(
      'after',
      `
What is given must all hold. A webhook is a hint upon which Bunny is asked, so any of them may be applied any number of
times: a render that has ended stays as it is.

Status 0: all that matched is due again. 1: nothing matched, or an id is unknown.`,
    )
    .action(async (ids: string[], options: Options) => {
      const { video, unapplied, since, dryRun = false } = options;
      const filter: WebhookFilter = {
        ...(ids.length > 0 && { ids }),
        ...(video && { videoGuid: video }),
        ...(unapplied && { unapplied }),
        ...(since && { sinceMs: since }),
      };
      if (Object.keys(filter).length === 0)
        throw new Refusal('usage', 'Say which webhooks: ids of events, --video, --unapplied or --since.');
      const events = await onDatabase(options.dataDir, (db) => replay(db, filter, dryRun));
      process.stdout.write(
        options.json ? `${JSON.stringify({ dryRun, events: events.map(factsOf) })}\n` : tell(events, dryRun),
      );
      process.exitCode = events.length > 0 ? 0 : 1;
    });

/** Batch by batch; answers the events as they were before. */
async function replay(db: Db, filter: WebhookFilter, dryRun: boolean): Promise<WebhookEvent[]> {
  await refuseUnknown(db, filter.ids ?? []);
  const replayed: WebhookEvent[] = [];
  for (let after: string | null = null; ; ) {
    const events = await selectWebhooks(db, filter, { after, limit: BATCH });
    const ids = events.map(({ id }) => id);
    if (!dryRun && ids.length > 0) await replayWebhooks(db, ids);
    replayed.push(...events);
    after = ids.at(-1) ?? null;
    if (events.length < BATCH) return replayed;
  }
}

async function refuseUnknown(db: Db, ids: readonly string[]): Promise<void> {
  const named = new Set(ids);
  const known = await selectWebhooks(db, { ids: [...named] }, { after: null, limit: Math.max(1, named.size) });
  for (const { id } of known) named.delete(id);
  if (named.size > 0) throw new Refusal('unknown_id', `No webhook event is called ${[...named].join(', ')}.`);
}

const factsOf = ({ id, videoGuid, status, receivedAt, appliedAt, outcome, tries }: WebhookEvent) => ({
  id,
  videoGuid,
  status,
  receivedAt,
  appliedAt,
  outcome,
  tries,
});

function tell(events: readonly WebhookEvent[], dryRun: boolean): string {
  const lines =
    events.length <= MOST_LINES
      ? events.map(({ id, videoGuid, status, receivedAt, appliedAt, outcome }) => {
          const was = appliedAt ? `was applied: ${outcome}` : `was not applied${outcome ? `: ${outcome}` : ''}`;
          return `${id}  video ${videoGuid}  status ${status}, ${receivedAt.toISOString()}, ${was}`;
        })
      : [];
  const total =
    events.length === 0
      ? 'No webhook matches.'
      : `${events.length} ${dryRun ? 'would be due again' : 'are due again: the next sweep applies them'}.`;
  return `${[...lines, total].join('\n')}\n`;
}
