import { z } from 'zod';

const count = z.number().int().nonnegative();
/** `true`: always; a number: the next so many times; an object: the next `count` times that the subject contains `match`. */
const trigger = z.union([
  z.boolean(),
  count,
  z.strictObject({ count: count.optional(), match: z.string().optional() }),
]);
const rate = z.number().min(0).max(1);
const chance = z.union([rate, z.strictObject({ rate, count: count.optional(), match: z.string().optional() })]);
const milliseconds = z.number().int().min(0).max(3_600_000);

/**
 * What can go wrong, as `POST /sim/faults` and `SIM_FAULTS` take it. Subjects for `match`: `METHOD /path` for requests,
 * `guid title` for videos, `guid title status=N` for webhooks.
 */
const faultsSchema = z.strictObject({
  /** Added before each answer of the stream and storage API. */
  latencyMs: milliseconds.optional(),
  rate429: chance.optional(),
  rate5xx: chance.optional(),
  /** `Retry-After` of the 429s. */
  retryAfterSeconds: count.optional(),
  /** The call is carried out, but never answered: the connection is held for `holdMs` and then cut. */
  acceptThenTimeout: z
    .strictObject({ create: trigger.optional(), upload: trigger.optional(), holdMs: milliseconds.optional() })
    .optional(),
  /** Lists answer 400 where they are asked to search. */
  searchRefused: trigger.optional(),
  /** A new video or stored file shows in lists only after so long; `true` is three seconds. */
  eventualListing: z.union([z.boolean(), milliseconds]).optional(),
  webhooks: z
    .strictObject({
      off: trigger.optional(),
      lost: trigger.optional(),
      doubled: trigger.optional(),
      /** All webhooks of the video wait for its last one and then come in reverse. */
      reordered: trigger.optional(),
      /** The upload is answered only after its webhooks are out, at most five seconds later. */
      early: trigger.optional(),
      late: milliseconds.optional(),
      /** Beside "queued" comes a "finished" with a wrong signature. */
      forged: trigger.optional(),
    })
    .optional(),
  /** The video stays at "transcoding" for ever. */
  stuckTranscode: trigger.optional(),
  /** The video is gone after its upload was answered. */
  missingVideo: trigger.optional(),
  /** The video "finishes" with half of its length, without a word. */
  truncatedFinish: trigger.optional(),
});
type FaultSettings = z.infer<typeof faultsSchema>;

type TriggerName =
  | 'searchRefused'
  | 'stuckTranscode'
  | 'missingVideo'
  | 'truncatedFinish'
  | 'acceptThenTimeout.create'
  | 'acceptThenTimeout.upload'
  | 'rate429'
  | 'rate5xx'
  | `webhooks.${'off' | 'lost' | 'doubled' | 'reordered' | 'early' | 'forged'}`;

interface Armed {
  left: number;
  rate: number;
  match: string;
}

/** The faults that are switched on, and how often each of them will still strike. */
export class Faults {
  #settings: FaultSettings = {};
  readonly #armed = new Map<string, Armed>();

  constructor(initial?: unknown) {
    if (initial !== undefined) this.merge(initial);
  }

  /** What is wrong with an input to `merge`, in words. */
  static problem(input: unknown): string | undefined {
    const { error } = faultsSchema.safeParse(input);
    return error && z.prettifyError(error);
  }

  /** Adds to what is set, name by name; a count starts anew. Throws a `ZodError` where the input is not valid. */
  merge(input: unknown): void {
    const { acceptThenTimeout, webhooks, ...flat } = faultsSchema.parse(input);
    this.#settings = {
      ...this.#settings,
      ...flat,
      acceptThenTimeout: { ...this.#settings.acceptThenTimeout, ...acceptThenTimeout },
      webhooks: { ...this.#settings.webhooks, ...webhooks },
    };
    this.#arm('', flat);
    this.#arm('acceptThenTimeout.', acceptThenTimeout ?? {});
    this.#arm('webhooks.', webhooks ?? {});
  }

  reset(): void {
    this.#settings = {};
    this.#armed.clear();
  }

  settings(): unknown {
    return this.#settings;
  }

  /** Whether this fault strikes now; counts it if so. */
  strikes(name: TriggerName, subject: string): boolean {
    const armed = this.#armed.get(name);
    if (!armed || armed.left <= 0 || !subject.includes(armed.match) || Math.random() >= armed.rate) return false;
    armed.left -= 1;
    return true;
  }

  get latencyMs(): number {
    return this.#settings.latencyMs ?? 0;
  }
  get retryAfterSeconds(): number {
    return this.#settings.retryAfterSeconds ?? 1;
  }
  get holdMs(): number {
    return this.#settings.acceptThenTimeout?.holdMs ?? 30_000;
  }
  get webhookDelayMs(): number {
    return this.#settings.webhooks?.late ?? 0;
  }
  get listingDelayMs(): number {
    const delay = this.#settings.eventualListing ?? 0;
    return typeof delay === 'number' ? delay : delay ? 3000 : 0;
  }

  #arm(prefix: string, given: Record<string, unknown>): void {
    for (const [name, value] of Object.entries(given)) {
      const armed = armedBy(prefix + name, value);
      if (armed) this.#armed.set(prefix + name, armed);
    }
  }
}

function armedBy(name: string, value: unknown): Armed | undefined {
  const always = { left: Number.POSITIVE_INFINITY, rate: 1, match: '' };
  if (typeof value === 'boolean') return { ...always, left: value ? always.left : 0 };
  if (typeof value === 'number')
    return name.startsWith('rate') ? { ...always, rate: value } : { ...always, left: value };
  const given = z
    .object({ count: count.default(always.left), rate: rate.default(1), match: z.string().default('') })
    .safeParse(value);
  return given.success ? { left: given.data.count, rate: given.data.rate, match: given.data.match } : undefined;
}
