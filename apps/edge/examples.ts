/**
 * The examples of the API's document, one story: Physio Nord prescribes squats and lunges, and two of three videos are
 * ready. Each is held to the schema of what it stands for, by the compiler and by a test.
 */

const uuid = (last: string) => `0199f2c1-7b1e-7c35-9a34-2f4f1d6b${last}`;

export const ids = {
  org: uuid('8a00'),
  exercise: uuid('8a10'),
  program: uuid('8a20'),
  session: uuid('8a21'),
  item: uuid('8a22'),
  render: uuid('8a30'),
  otherRender: uuid('8a31'),
  librarySession: uuid('8a40'),
  notification: uuid('8a50'),
  run: uuid('8a60'),
  delivery: uuid('8a70'),
  endpoint: uuid('8a80'),
  cursor: uuid('8aff'),
};

const at = '2026-03-14T09:26:53.589Z';
const later = '2026-03-14T09:28:41.207Z';
const sourceSha256 = '9b1f0f6f0b7c3f0c1f3f5a0d6f1f2e7b4c8d9e0a1b2c3d4e5f60718293a4b5c6';
const masterSha256 = '3d5e8c0f9a1b2c4d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5';
const recipeHash = '71c6f3a0b5d94e8f2a1c7b6d5e4f30219a8b7c6d5e4f3021b0a1c2d3e4f50617';
const cdn = 'https://physio-nord.b-cdn.net';
const hlsUrl = 'https://vz-7a1d3f08-5c2.b-cdn.net/657bb740-a71b-4529-a012-528021c31a92/playlist.m3u8';
const manifestUrl = `${cdn}/renders/${masterSha256}/manifest.json`;

export const page = <T>(item: T) => ({ items: [item], nextCursor: ids.cursor });

export const newExercise = {
  names: { en: 'Squat', de: 'Kniebeuge' },
  repMarks: { startMs: 0, turnMs: 1500, endMs: 3000 },
};

const lowResolution = {
  code: 'low_resolution',
  severity: 'warning' as const,
  sentence: 'The video is smaller than 480p; it will look soft on a large screen.',
};

export const exercise = {
  id: ids.exercise,
  tier: 'org' as const,
  orgId: ids.org,
  ...newExercise,
  source: { sha256: sourceSha256, bytes: 4_180_223, durationMs: 3_040, warnings: [lowResolution], uploadedAt: at },
  createdAt: at,
  updatedAt: at,
};

export const exerciseDetail = {
  ...exercise,
  cues: [{ language: 'en', name: 'count-1', sha256: recipeHash, durationMs: 480, updatedAt: at }],
};

export const madeExercise = { ...exerciseDetail, source: null, cues: [] };

export const uploadReport = {
  sha256: sourceSha256,
  bytes: 4_180_223,
  facts: {
    ...{ durationMs: 3_040, frames: 76, width: 640, height: 360, frameRate: 25, variableFrameRate: false },
    ...{ videoCodec: 'h264', audioCodec: null, container: 'mov,mp4,m4a,3gp,3g2,mj2' },
  },
  errors: [],
  warnings: [lowResolution],
};

const given = { exerciseId: ids.exercise, dose: { sets: 3, reps: 12, restSeconds: 45 } };

const dose = {
  ...{ sets: 3, reps: 12, tempo: { out: null, hold: null, back: null, pause: null } },
  ...{ restSeconds: 45, sides: 'none' as const, leadInSeconds: 5, cues: 'voice' as const, loudness: -16 },
};

const item = { id: ids.item, exerciseId: ids.exercise, exerciseName: 'Squat', dose, renderId: ids.render };

export const newProgram = {
  title: 'Knee, first month',
  language: 'en',
  sessions: [{ title: 'Mornings', items: [given] }],
};

export const draft = {
  id: ids.program,
  orgId: ids.org,
  title: newProgram.title,
  language: newProgram.language,
  status: 'draft' as const,
  createdBy: 'specialist-3',
  createdAt: at,
  updatedAt: at,
  publishedAt: null,
};

const contents = (status: 'draft' | 'published', renderId: string | null) => ({
  sessions: [{ id: ids.session, title: 'Mornings', status, items: [{ ...item, renderId }] }],
});

export const draftDetail = { ...draft, ...contents('draft', null) };
export const program = { ...draft, status: 'published' as const, publishedAt: later };
export const programDetail = { ...program, ...contents('published', ids.render) };
export const archivedProgram = { ...programDetail, status: 'archived' as const };

export const newSession = { title: 'Core', language: 'en', items: [given] };

export const librarySession = {
  id: ids.librarySession,
  orgId: ids.org,
  title: newSession.title,
  language: newSession.language,
  status: 'draft' as const,
  createdBy: 'specialist-3',
  createdAt: at,
  updatedAt: at,
  publishedAt: null,
};

export const librarySessionDetail = { ...librarySession, items: [{ ...item, renderId: null }] };

export const preview = {
  ...{ total: 3, ready: 2, inProgress: 0, toBake: 1 },
  ...{ estimate: { likelySeconds: 100, latestSeconds: 180 }, problems: [] },
};

export const counts = { total: 3, ready: 2, queued: 1, inProgress: 0, failed: 0 };

export const render = {
  ...{ id: ids.render, exerciseId: ids.exercise, exerciseName: 'Squat', recipeHash, language: 'en' },
  ...{ status: 'ready' as const, itemIds: [ids.item], progress: null, generation: 0, attempts: 1, maxAttempts: 5 },
  ...{ error: null, warnings: [], durationMs: 158_000, masterSha256, hlsUrl, manifestUrl },
  ...{ updatedAt: later, readyAt: later },
};

export const requeued = { id: ids.otherRender, status: 'pending' as const, generation: 1 };
export const cancelled = { id: ids.otherRender, status: 'failed' as const, generation: 0 };

export const newAssignment = { patientId: 'patient-17', notifyWhenReady: true };
export const assignment = { programId: ids.program, ...newAssignment, createdAt: later };

export const readiness = { status: 'preparing' as const, total: 3, ready: 2, readyThrough: 2, failed: [] };
export const programReadiness = {
  ...readiness,
  eta: { likely: '2026-03-14T09:29:40Z', latest: '2026-03-14T09:31:10Z' },
};
export const readinessEvent = `event: readiness\nid: "q7cDUk2XxH2mA5pK7w3sT1nYb0E"\ndata: ${JSON.stringify(programReadiness)}\n\n`;

export const assignedProgram = {
  ...{ id: ids.program, title: newProgram.title, language: 'en', publishedAt: later, assignedAt: later },
  ...{ sessions: [{ id: ids.session, title: 'Mornings' }], readiness },
};

export const playable = {
  ...{ sessionId: ids.session, programId: ids.program, title: 'Mornings', status: 'preparing' as const },
  items: [
    {
      ...{ position: 0, exerciseName: 'Squat', status: 'ready' as const, itemId: ids.item, exerciseId: ids.exercise },
      ...{ dose, durationMs: 158_000, hlsUrl, manifestUrl },
      captionsUrl: `${cdn}/renders/${masterSha256}/captions.vtt`,
      posterUrl: `${cdn}/renders/${masterSha256}/poster.jpg`,
      baselines: [
        {
          ...{ name: '480p', width: 854, height: 480, url: `${cdn}/renders/${masterSha256}/480p.mp4` },
          ...{ sha256: sourceSha256, bytes: 9_120_400 },
        },
      ],
    },
    { position: 1, exerciseName: 'Lunge', status: 'transcoding' as const },
  ],
};

export const run = { id: ids.run, sessionId: ids.session, startedAt: later };

export const notification = {
  id: ids.notification,
  kind: 'program.ready',
  payload: { programId: ids.program, title: newProgram.title },
  createdAt: later,
  readAt: null,
};

export const webhook = {
  IsLiveStreamWebhook: false,
  VideoLibraryId: 133,
  VideoGuid: '657bb740-a71b-4529-a012-528021c31a92',
  Status: 3,
};

export const newEndpoint = {
  url: 'https://clinic.example.com/webhooks/bakehouse',
  events: ['program.ready' as const],
  description: 'Appointments',
};

export const endpoint = {
  ...{ id: ids.endpoint, orgId: ids.org, ...newEndpoint, enabled: true, disabledReason: null, failingSince: null },
  ...{ createdBy: 'manager-1', createdAt: at, updatedAt: at },
};

export const endpointWithSecret = { ...endpoint, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=' };

export const delivery = {
  id: ids.delivery,
  type: 'program.ready' as const,
  data: { programId: ids.program, title: 'Knee, first month' },
  state: 'pending' as const,
  ...{ createdAt: at, endedAt: null, nextTryAt: later },
};

export const deliveryLog = {
  ...delivery,
  attempts: [{ at: later, status: 503, errorCode: 'endpoint_refused', durationMs: 84 }],
};
