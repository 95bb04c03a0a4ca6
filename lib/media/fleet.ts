import { AppError, toAppError } from '../errors.ts';
import {
  type AssetUpload,
  type ComposeOptions,
  createMediaClient,
  type MediaClient,
  type UploadAssetOptions,
} from './client.ts';
import type {
  Asset,
  AssetAnswer,
  AssetKind,
  Capacity,
  ComposeDone,
  ComposeRequest,
  ValidationReport,
  VideoStatus,
} from './contract.ts';

export interface FleetOptions {
  /** Each one an instance of the media service, or a load balancer before several. */
  targets: readonly string[];
  token: string;
  /** How long a plain question (status, capacity) may take. Default 15 000. */
  timeoutMs?: number;
}

/** What the library and the storage zone hold, whichever target is asked. */
export type Inventory = Pick<
  MediaClient,
  'listVideos' | 'deleteVideo' | 'listStored' | 'checkArtefacts' | 'rebuildManifest'
>;

/**
 * Several media services as one. A bake goes to the target that is named; a question goes to whichever target answers.
 * Errors are those of the media client; where no target can answer, the last one's.
 */
export interface Fleet extends Inventory {
  readonly targets: readonly string[];
  composeRender(target: string, request: ComposeRequest, options: ComposeOptions): Promise<ComposeDone>;
  /** What one target can take. Through a load balancer: one of its instances, at each call another. */
  capacity(target: string, signal?: AbortSignal): Promise<Capacity>;
  videoStatus(guid: string, signal?: AbortSignal): Promise<VideoStatus>;
  /** A body can be sent only once, so a target that answers is looked for before; its failure is then the answer. */
  uploadAsset(upload: AssetUpload, options: UploadAssetOptions): Promise<AssetAnswer>;
  validate(asset: Asset, kind: AssetKind, signal?: AbortSignal): Promise<ValidationReport>;
}

/** The target is not there or on its way out; another one may answer. */
const ELSEWHERE = new Set(['media_unreachable', 'media_draining', 'media_unavailable', 'media_silent']);

export function createFleet({ targets, token, timeoutMs }: FleetOptions): Fleet {
  const members = [...new Set(targets)].map((target) => ({
    target,
    client: createMediaClient({ baseUrl: target, token, ...(timeoutMs !== undefined && { timeoutMs }) }),
  }));
  type Member = (typeof members)[number];
  /** Who answered last is asked first: one that hangs costs its deadline once. */
  let first = 0;

  const memberOf = (target: string): Member => {
    const found = members.find((member) => member.target === target);
    if (!found) throw new TypeError(`no such media target: ${target}`);
    return found;
  };

  const fromAny = async <T>(ask: (member: Member) => Promise<T>): Promise<T> => {
    const order = members.map((_, i) => (first + i) % members.length);
    let last = new AppError('media_unreachable', { detail: 'no media target is configured' });
    for (const index of order) {
      const member = members[index];
      if (!member) continue;
      try {
        const answer = await ask(member);
        first = index;
        return answer;
      } catch (thrown) {
        last = toAppError(thrown);
        if (!ELSEWHERE.has(last.code)) throw last;
      }
    }
    throw last;
  };

  /** One that answers and takes new work; with a single target there is nothing to choose. */
  const choose = (signal: AbortSignal): Promise<Member> =>
    fromAny(async (member) => {
      if (members.length === 1) return member;
      const { draining } = await member.client.capacity(signal);
      if (draining) throw new AppError('media_draining');
      return member;
    });

  return {
    targets: members.map(({ target }) => target),
    composeRender: (target, request, options) => memberOf(target).client.composeRender(request, options),
    capacity: (target, signal) => memberOf(target).client.capacity(signal),
    videoStatus: (guid, signal) => fromAny(({ client }) => client.videoStatus(guid, signal)),
    uploadAsset: async (upload, options) => (await choose(options.signal)).client.uploadAsset(upload, options),
    validate: (asset, kind, signal) => fromAny(({ client }) => client.validate(asset, kind, signal)),
    listVideos: (asked, signal) => fromAny(({ client }) => client.listVideos(asked, signal)),
    deleteVideo: (guid, signal) => fromAny(({ client }) => client.deleteVideo(guid, signal)),
    listStored: (asked, signal) => fromAny(({ client }) => client.listStored(asked, signal)),
    checkArtefacts: (check, signal) => fromAny(({ client }) => client.checkArtefacts(check, signal)),
    rebuildManifest: (request, signal) => fromAny(({ client }) => client.rebuildManifest(request, signal)),
  };
}
