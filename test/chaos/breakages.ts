interface Breakage {
  what: string;
  file: string;
  /** Must stand in the file exactly once. */
  find: string;
  put: string;
}

/** Defects that the chaos run must notice; each is one change of one file. */
export const BREAKAGES = {
  fence: {
    what: 'a worker that has lost its lease may still write',
    file: 'lib/db/move.ts',
    find: ` and r.lease_token = \${where.token}\``,
    put: '`',
  },
  'mirror-sweep': {
    what: 'what the queue has lost is never added again',
    file: 'apps/worker/maintenance/mirror-sweep.ts',
    find: 'mirror.sweep({ staleMs: config.RENDER_REDISPATCH_MS })',
    put: 'Promise.resolve(0)',
  },
  'webhook-dedupe': {
    what: 'identical webhooks are stored once',
    file: 'lib/db/webhooks.ts',
    find: 'const [stored] = await db.insert(webhookEvents)',
    put: `const [known] = await db.select({ id: webhookEvents.id }).from(webhookEvents).where(eq(webhookEvents.body, event.body));
  if (known) return known;
  const [stored] = await db.insert(webhookEvents)`,
  },
} as const satisfies Record<string, Breakage>;

/** The source with the change made. Throws where it does not fit: a breakage that breaks nothing proves nothing. */
export function breakSource(source: string, { find, put }: Pick<Breakage, 'find' | 'put'>): string {
  const places = source.split(find).length - 1;
  if (places !== 1) throw new Error(`“${find}” stands ${places} times in the file, and should once`);
  return source.replace(find, () => put);
}
