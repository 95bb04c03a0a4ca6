import { z } from 'zod';

/**
 * The fields we read of Bunny's models (Stream OpenAPI 1.6.8). The schema drifts weekly, so unknown fields pass and only
 * what identifies a thing is insisted on; anything else that is odd counts as absent.
 */
const optional = <T extends z.ZodType>(type: T) => type.nullish().catch(undefined);

const transcodingMessage = z.looseObject({
  level: z.number().int().catch(0),
  issueCode: z.number().int().catch(0),
  message: optional(z.string()),
  value: optional(z.string()),
});

export const videoModel = z.looseObject({
  guid: z.string().min(1),
  title: z.string().catch(''),
  /** `VideoModelStatus`, not the webhook's enum. */
  status: z.number().int(),
  /** Whole seconds, as the source's container claims: a truncated source still claims its full length. */
  length: z.number().catch(0),
  /** With `Z` and 7 decimals in the answer to create, without a zone elsewhere. */
  dateUploaded: optional(z.string()),
  /** Comma-separated and unsorted, grows while transcoding. */
  availableResolutions: optional(z.string()),
  encodeProgress: z.number().catch(0),
  /** 0 until shortly after the video has finished. */
  storageSize: z.number().catch(0),
  width: z.number().catch(0),
  height: z.number().catch(0),
  hasMP4Fallback: z.boolean().catch(false),
  /** SHA-256 of the uploaded file, upper-case hex. */
  originalHash: optional(z.string()),
  /** `""` when in no collection. */
  collectionId: optional(z.string()),
  thumbnailFileName: optional(z.string()),
  transcodingMessages: optional(z.array(transcodingMessage)),
});
export type VideoModel = z.infer<typeof videoModel>;

export const collectionModel = z.looseObject({
  guid: z.string().min(1),
  name: z.string().catch(''),
  videoCount: z.number().catch(0),
});
export type CollectionModel = z.infer<typeof collectionModel>;

/** One page of a list; items are parsed one by one so that one odd item does not hide the rest. */
export const page = z.looseObject({
  totalItems: z.number().int().nonnegative(),
  itemsPerPage: z.number().int().positive(),
  items: z
    .array(z.unknown())
    .nullish()
    .transform((items) => items ?? []),
});

const resolutionReference = z.looseObject({ resolution: z.string(), path: optional(z.string()) });

export const resolutionsAnswer = z.looseObject({
  data: z.looseObject({
    availableResolutions: z
      .array(z.string())
      .nullish()
      .transform((names) => names ?? []),
    mp4Resolutions: z
      .array(resolutionReference)
      .nullish()
      .transform((references) => references ?? []),
  }),
});
