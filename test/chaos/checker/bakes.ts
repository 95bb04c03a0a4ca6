import { hashInTitle } from '../../../lib/media/video-title.ts';
import { type Check, countMoves, histories, type Violation } from './evidence.ts';
import { grouped } from './grouped.ts';

/** One row for each recipe however often and from wherever it was published, and one bake that counts. */
export const oneBakePerKey: Check = (evidence) => {
  const wrong = (detail: string, renderId?: string): Violation => ({
    invariant: 'one-bake-per-key',
    detail,
    ...(renderId !== undefined && { renderId }),
  });
  const keys = grouped(evidence.renders, (row) => `${row.exerciseId} ${row.recipeHash} ${row.language}`);
  const doubled = [...keys].filter(([, rows]) => rows.length > 1).map(([key]) => wrong(`two rows for ${key}`));
  const number =
    keys.size === evidence.recipes ? [] : [wrong(`${evidence.recipes} recipes were published, there are ${keys.size}`)];
  const bakes = histories(evidence).flatMap(({ render, events }) =>
    [...grouped(events, (event) => event.generation)].flatMap(([generation, own]) => {
      const uploads = countMoves(own, 'rendering', 'transcoding');
      const allowed = 1 + countMoves(own, 'transcoding', 'pending');
      return uploads > allowed
        ? [wrong(`was uploaded ${uploads} times in generation ${generation}, ${allowed} explained`, render.id)]
        : [];
    }),
  );
  const copies = histories(evidence).flatMap(({ render, events }) => {
    const videos = evidence.videos.before.filter((video) => {
      const piece = hashInTitle(evidence.titlePrefix, video.title);
      return video.state !== 'created' && piece !== null && render.recipeHash.startsWith(piece);
    });
    // Each claim may have died between sending the bytes and saying so; an undisturbed life has one claim.
    const claims = countMoves(events, 'pending', 'rendering');
    return videos.length > claims
      ? [wrong(`has ${videos.length} videos with bytes at Bunny from ${claims} claims`, render.id)]
      : [];
  });
  return [...doubled, ...number, ...bakes, ...copies];
};

/** After the reconcile Bunny has exactly the videos that the rows name. */
export const noOrphan: Check = (evidence) => {
  const named = new Map(
    evidence.renders.flatMap((row) => (row.videoGuid === null ? [] : [[row.videoGuid, row.id] as const])),
  );
  const there = new Set(evidence.videos.after.map((video) => video.guid));
  const orphans = evidence.videos.after
    .filter((video) => !named.has(video.guid))
    .map(
      (video): Violation => ({ invariant: 'no-orphan', detail: `video ${video.guid} “${video.title}” is no row’s` }),
    );
  const missing = [...named]
    .filter(([guid]) => !there.has(guid))
    .map(([guid, renderId]): Violation => ({ invariant: 'no-orphan', renderId, detail: `video ${guid} is not there` }));
  return [...orphans, ...missing];
};

/** Who is `ready` has a finished video, and a manifest whose files are there with the bytes that it names. */
export const readyPlays: Check = (evidence) =>
  evidence.renders
    .filter((render) => render.status === 'ready')
    .flatMap((render) => {
      const wrong = (detail: string): Violation => ({ invariant: 'ready-plays', renderId: render.id, detail });
      const video = evidence.videos.after.find((each) => each.guid === render.videoGuid);
      const stored = evidence.stored.get(render.id);
      return [
        ...(video?.state === 'finished' ? [] : [wrong(`its video is ${video?.state ?? 'missing'}`)]),
        ...(stored ? [] : [wrong('nothing is known of its files')]),
        ...(stored && stored.problem !== null ? [wrong(stored.problem)] : []),
        ...(stored && stored.problem === null && stored.masterSha256 !== render.masterSha256
          ? [wrong(`the manifest names master ${stored.masterSha256}, the row ${render.masterSha256}`)]
          : []),
      ];
    });
