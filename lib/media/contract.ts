import { z } from 'zod';
import { recipeSchema, sha256Hex } from '../domain/recipe.ts';

/** The wire between the media service and its callers; both ends parse with these schemas. */

/** Where an asset's bytes are: an object of the storage zone, or (where the service allows it) a local file. */
export const assetLocation = z
  .string()
  .max(1024)
  .regex(/^(zone:assets\/[A-Za-z0-9/_.-]+|file:\/\/\/.+)$/, 'expects zone:assets/… or file:///…');

export const asset = z.strictObject({ sha256: sha256Hex, location: assetLocation });
export type Asset = z.infer<typeof asset>;

export const composeRequest = z.strictObject({
  renderId: z.uuid(),
  recipeHash: sha256Hex,
  recipe: recipeSchema,
  /** Every sha256 that the recipe names, once. */
  assets: z.array(asset).min(1).max(200),
  /**
   * What an earlier attempt reached; used where storage and Bunny still have it. A master without a video: the video it
   * had was given up, so another one is wanted.
   */
  resume: z.strictObject({ masterSha256: sha256Hex, videoGuid: z.string().min(1).max(64).optional() }).optional(),
  /** Bunny collection to put the video into. */
  collection: z.string().max(64).optional(),
});
export type ComposeRequest = z.output<typeof composeRequest>;

export const STAGES = ['stage', 'segments', 'audio', 'mux', 'verify', 'artefacts', 'store', 'upload'] as const;

export const warning = z.object({ code: z.string(), sentence: z.string() });
export type Warning = z.infer<typeof warning>;

export const baseline = z.object({
  name: z.string(),
  width: z.int(),
  height: z.int(),
  url: z.string(),
  sha256: sha256Hex,
  bytes: z.int(),
});
export type Baseline = z.infer<typeof baseline>;

const progressLine = z.object({
  type: z.literal('progress'),
  stage: z.enum(STAGES),
  /** Of the whole bake, 0–100, never falling. */
  percent: z.number().min(0).max(100),
  /** Milliseconds to the end, where it can be told. */
  etaMs: z.number().nullable(),
});
const videoLine = z.object({
  type: z.literal('video'),
  guid: z.string(),
  masterSha256: sha256Hex,
  collectionId: z.string().nullable(),
});
const storedLine = z.object({
  type: z.literal('stored'),
  kind: z.enum(['captions', 'poster', 'baseline', 'master', 'manifest']),
  url: z.string(),
  sha256: sha256Hex,
  bytes: z.int(),
});
const doneLine = z.object({
  type: z.literal('done'),
  masterSha256: sha256Hex,
  videoGuid: z.string(),
  collectionId: z.string().nullable(),
  durationMs: z.int(),
  manifestUrl: z.string(),
  captionsUrl: z.string().nullable(),
  posterUrl: z.string(),
  baselines: z.array(baseline),
  warnings: z.array(warning),
  /** Segments encoded for this bake and segments taken from the cache. */
  segments: z.object({ encoded: z.int(), reused: z.int() }),
  /** True where storage and Bunny already had everything and nothing was baked. */
  resumed: z.boolean(),
});
const errorLine = z.object({
  type: z.literal('error'),
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  /** How long whoever refused (Bunny, mostly) asked to be left alone. */
  retryAfterMs: z.number().optional(),
  /** For the caller's log only: the tail of stderr and the like. */
  detail: z.string().optional(),
});

/** One line of the NDJSON answer. The last one is `done` or `error` and decides; a stream without it has failed. */
export const composeLine = z.discriminatedUnion('type', [progressLine, videoLine, storedLine, doneLine, errorLine]);
export type ComposeLine = z.infer<typeof composeLine>;
export type ComposeDone = z.infer<typeof doneLine>;

/** Bunny's state of a video in our words. */
export const videoStatus = z.object({
  guid: z.string(),
  state: z.enum(['missing', 'created', 'processing', 'playable', 'finished', 'failed']),
  lengthSeconds: z.number(),
  availableResolutions: z.array(z.string()),
  collectionId: z.string().nullable(),
  hlsUrl: z.string(),
  /** Bunny's transcodingMessages, in the words of lib/bunny; the text is for the log only. */
  messages: z.array(
    z.object({ level: z.enum(['undefined', 'information', 'warning', 'error']), code: z.string(), text: z.string() }),
  ),
});
export type VideoStatus = z.infer<typeof videoStatus>;

const recipeHashPrefix = z.string().regex(/^[0-9a-f]{32}$/);

/** One page of the video library, the newest first; pages shift while videos come and go. */
export const videoPage = z.object({
  videos: z.array(
    z.object({
      guid: z.string(),
      title: z.string(),
      /** What the title carries of the recipe hash; null for a video that is not ours. */
      recipeHashPrefix: recipeHashPrefix.nullable(),
      /** When it was made, in UTC; null where Bunny does not say. */
      uploadedAt: z.iso.datetime().nullable(),
    }),
  ),
  more: z.boolean(),
});
export type VideoPage = z.infer<typeof videoPage>;
export type ListedVideo = VideoPage['videos'][number];

/** False where there was no such video any more. */
export const videoDeletion = z.object({ deleted: z.boolean() });

/** Recipe hashes under which something is stored, in their order; `more` lie behind the last one. */
export const storedPage = z.object({ recipeHashes: z.array(sha256Hex), more: z.boolean() });
export type StoredPage = z.infer<typeof storedPage>;

/** How many renders one check may name. */
export const MAX_CHECKED = 50;

export const artefactCheck = z.strictObject({
  renders: z
    .array(z.strictObject({ recipeHash: sha256Hex, masterSha256: sha256Hex }))
    .min(1)
    .max(MAX_CHECKED),
});
export type ArtefactCheck = z.infer<typeof artefactCheck>;

/**
 * In the order asked. `whole`: the manifest is there, names the master asked for, and all that it names is there.
 * `broken`: it is not so. `unknown`: storage could not be asked.
 */
export const artefactReport = z.object({ states: z.array(z.enum(['whole', 'broken', 'unknown'])) });
export type ArtefactReport = z.infer<typeof artefactReport>;

/** What a row knows of its render: enough to put its manifest together from the files that are stored. */
export const rebuildRequest = z.strictObject({
  recipeHash: sha256Hex,
  recipe: recipeSchema,
  /** The voice clips that the recipe names: their lengths settle which of two cues is heard. */
  assets: z.array(asset).max(200),
  masterSha256: sha256Hex,
  durationMs: z.int().positive(),
  baselines: z.array(baseline).max(10),
  posterUrl: z.string().max(2048),
  captionsUrl: z.string().max(2048).nullable(),
  warnings: z.array(warning).max(100),
  /** Say what would come of it, and store nothing. */
  dryRun: z.boolean().default(false),
});
export type RebuildRequest = z.input<typeof rebuildRequest>;

/** `incomplete` names what is missing in storage or is not what the row says, for the log. */
export const rebuildAnswer = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('rebuilt') }),
  z.object({ outcome: z.literal('incomplete'), missing: z.array(z.string()) }),
]);
export type RebuildAnswer = z.infer<typeof rebuildAnswer>;

export const assetTier = z.string().regex(/^(platform|org:[0-9a-f-]{36})$/, 'expects platform or org:{id}');
export const assetKind = z.enum(['source', 'cue']);
export type AssetKind = z.infer<typeof assetKind>;

const finding = z.object({ code: z.string(), severity: z.enum(['error', 'warning']), sentence: z.string() });
export type Finding = z.infer<typeof finding>;

export const validationReport = z.object({
  facts: z.object({
    /** Measured by decoding, not what the header claims. */
    durationMs: z.int(),
    frames: z.int(),
    width: z.int(),
    height: z.int(),
    frameRate: z.number(),
    variableFrameRate: z.boolean(),
    videoCodec: z.string().nullable(),
    audioCodec: z.string().nullable(),
    container: z.string(),
  }),
  errors: z.array(finding),
  warnings: z.array(finding),
});
export type ValidationReport = z.infer<typeof validationReport>;

export const assetAnswer = z.object({
  sha256: sha256Hex,
  bytes: z.int(),
  /** Null where the report has errors: such a file is not stored. */
  location: assetLocation.nullable(),
  report: validationReport,
});
export type AssetAnswer = z.infer<typeof assetAnswer>;

export const validateRequest = z.strictObject({ asset, kind: assetKind });

export const capacityAnswer = z.object({
  /** Made anew by each process, so that several behind one address can be told apart. */
  instance: z.string().regex(/^[\w-]{1,64}$/),
  slots: z.int().min(0),
  busy: z.int().min(0),
  draining: z.boolean(),
});
export type Capacity = z.infer<typeof capacityAnswer>;
