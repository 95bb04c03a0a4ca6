import { existsSync, openAsBlob } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { StackDescription } from '../../apps/cli/stack/stack.ts';
import { makeClip, testFfmpeg } from '../support/ffmpeg.ts';
import { type RunningStack, runCli, startUp } from '../support/stack.ts';
import { makeTempDir } from '../support/temp-dir.ts';
import { waitFor } from '../support/wait.ts';

let stack: RunningStack;
let all: StackDescription;
let sql: postgres.Sql;

beforeAll(async () => {
  stack = await startUp(await makeTempDir(), { RENDER_LEASE_MS: '3000', SWEEP_MS: '300', RENDER_BACKOFF_MS: '200' });
  all = stack.all;
  sql = postgres(all.databaseUrl, { max: 2, onnotice: () => {} });
}, 120_000);

afterAll(async () => {
  await sql?.end();
  await stack?.stop();
  // Or commands would take it for a running one.
  expect(existsSync(join(all.dataDir, 'stack.json'))).toBe(false);
});

interface Answer {
  status: number;
  body: unknown;
}

const idOf = ({ body }: Answer) => z.object({ id: z.string() }).parse(body).id;
const renderSchema = z.looseObject({
  id: z.string(),
  hlsUrl: z.string().nullable(),
  manifestUrl: z.string().nullable(),
  masterSha256: z.string().nullable(),
});

async function call(token: string, method: string, path: string, body?: unknown): Promise<Answer> {
  const isFile = body instanceof Blob;
  const response = await fetch(`${all.edge.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': isFile ? 'application/octet-stream' : 'application/json',
    },
    ...(body !== undefined && { body: isFile ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
}

async function anExercise(seconds: number): Promise<string> {
  const clip = await makeClip(await makeTempDir(), { seconds, size: '320x240', rate: 25, audio: true });
  const made = await call(all.tokens.manager, 'POST', '/v1/exercises', { names: { en: `Clip of ${seconds} s` } });
  expect(made.status).toBe(201);
  const uploaded = await call(all.tokens.manager, 'PUT', `/v1/exercises/${idOf(made)}/source`, await openAsBlob(clip));
  expect(uploaded).toMatchObject({ status: 200, body: { facts: { variableFrameRate: false } } });
  return idOf(made);
}

const dose = { sets: 1, reps: 2, leadInSeconds: 1, cues: 'beeps' };

async function aProgram(exerciseIds: string[]): Promise<string> {
  const made = await call(all.tokens.specialist, 'POST', '/v1/programs', {
    title: 'Knee',
    language: 'en',
    sessions: [{ title: 'One', items: exerciseIds.map((exerciseId) => ({ exerciseId, dose })) }],
  });
  expect(made.status).toBe(201);
  return idOf(made);
}

const publish = (programId: string) => call(all.tokens.specialist, 'POST', `/v1/programs/${programId}/publish`);
const rendersOf = async (programId: string) => {
  const { body } = await call(all.tokens.specialist, 'GET', `/v1/programs/${programId}/renders`);
  return z.object({ items: z.array(renderSchema) }).parse(body).items;
};

const ready = (programId: string) =>
  waitFor(
    async () => {
      const { body } = await call(all.tokens.specialist, 'GET', `/v1/programs/${programId}/readiness`);
      const { status } = z.object({ status: z.string() }).parse(body);
      if (status === 'failed') throw new Error(JSON.stringify(body));
      return status === 'ready';
    },
    { label: 'the programme to be ready', timeoutMs: 90_000, everyMs: 200 },
  );

async function probeDuration(url: string): Promise<number> {
  const { stdout } = await execa(testFfmpeg().ffprobePath, [
    '-v',
    'error',
    '-show_entries',
    'format=duration',
    '-of',
    'csv=p=0',
    url,
  ]);
  return Number(stdout);
}

describe('publish to ready', () => {
  it('bakes a recipe once though it is published twice at once and used by two items, and it plays', {
    timeout: 150_000,
  }, async () => {
    const exerciseId = await anExercise(1);
    const programId = await aProgram([exerciseId, exerciseId]);
    const assigned = await call(all.tokens.specialist, 'POST', `/v1/programs/${programId}/assignments`, {
      patientId: 'dev-patient',
    });
    expect(assigned.status).toBeLessThan(300);

    const published = await Promise.all([publish(programId), publish(programId)]);
    expect(published.map(({ status }) => status)).toEqual([202, 202]);
    for (const { body } of published) expect(body).toMatchObject({ total: 1, failed: 0 });

    const program = await call(all.tokens.specialist, 'GET', `/v1/programs/${programId}`);
    const [session] = z.object({ sessions: z.array(z.object({ id: z.string() })) }).parse(program.body).sessions;
    const tooEarly = await call(all.tokens.patient, 'POST', `/v1/sessions/${session!.id}/runs`);
    expect(tooEarly).toMatchObject({ status: 409, body: { code: 'session_preparing' } });

    await ready(programId);
    const renders = await rendersOf(programId);
    expect(renders).toHaveLength(1);
    const [render] = renders;
    // Lead-in 1 s, two repetitions of 1 s, 2 s of end.
    expect(render).toMatchObject({ status: 'ready', durationMs: 5_000 });
    expect(Math.abs((await probeDuration(render!.hlsUrl!)) - 5)).toBeLessThan(0.2);
    const events = await sql`select cause from render_events where render_id = ${render!.id} order by id`;
    expect(events.map(({ cause }) => cause)).toEqual(['published', 'claim', 'uploaded', 'webhook']);

    const manifest = (await (await fetch(render!.manifestUrl!)).json()) as Record<string, unknown>;
    expect(JSON.stringify(manifest)).toContain(render!.masterSha256!);

    const play = await call(all.tokens.patient, 'GET', `/v1/sessions/${session!.id}/play`);
    expect(play.status).toBe(200);
    expect((await call(all.tokens.patient, 'POST', `/v1/sessions/${session!.id}/runs`)).status).toBe(201);

    const again = await publish(await aProgram([exerciseId]));
    expect(again.body).toEqual({ total: 1, ready: 1, queued: 0, inProgress: 0, failed: 0 });
  });

  it('answers while Redis is gone, and what was published then becomes ready', { timeout: 150_000 }, async () => {
    const programId = await aProgram([await anExercise(2)]);
    const client = new Redis(all.redisUrl);
    client.on('error', () => {});
    const before = Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1]);
    process.kill(before, 'SIGKILL');
    const started = performance.now();
    expect(await publish(programId)).toMatchObject({ status: 202, body: { total: 1, queued: 1 } });
    expect(performance.now() - started).toBeLessThan(1_500);
    await ready(programId);
    await waitFor(async () => Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1]) !== before, {
      label: 'Redis to be back',
    });
    client.disconnect();
  });

  it('survives the death of the worker and of media in the middle of a bake', { timeout: 150_000 }, async () => {
    const programId = await aProgram([await anExercise(3)]);
    await publish(programId);
    await waitFor(async () => (await rendersOf(programId))[0]?.status === 'rendering', {
      label: 'the bake to begin',
    });
    process.kill(all.media.pid!, 'SIGKILL');
    process.kill(all.worker.pid!, 'SIGKILL');
    await ready(programId);
  });

  it('keeps strangers away from the queues and from the API', async () => {
    for (const path of ['/ops/queues', '/ops/queues/', '/ops/queues/api/queues', '/v1/programs']) {
      expect((await fetch(`${all.edge.url}${path}`, { redirect: 'manual' })).status).toBe(401);
    }
    const login = Buffer.from(`${all.ops.user}:${all.ops.password}`).toString('base64');
    for (const path of ['/ops/queues', '/ops/queues/']) {
      expect((await fetch(`${all.edge.url}${path}`, { headers: { authorization: `Basic ${login}` } })).status).toBe(
        200,
      );
    }
  });

  it('refuses a forged webhook and keeps a genuine one', async () => {
    const body = JSON.stringify({ VideoLibraryId: 133, VideoGuid: 'nobody', Status: 3 });
    const headers = {
      'content-type': 'application/json',
      'x-bunnystream-signature-version': 'v1',
      'x-bunnystream-signature-algorithm': 'hmac-sha256',
    };
    const forged = await fetch(all.webhook.url, {
      method: 'POST',
      body,
      headers: { ...headers, 'x-bunnystream-signature': 'a'.repeat(64) },
    });
    expect(forged.status).toBe(401);
    const genuine = await fetch(`${all.webhook.url}?token=${all.webhook.token}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    });
    expect(genuine.status).toBe(200);
    expect(await sql`select status, verified_by from webhook_events where video_guid = 'nobody'`).toMatchObject([
      { status: 3, verified_by: 'token' },
    ]);
  });

  it('is what the commands of an operator in another terminal look at and change', { timeout: 150_000 }, async () => {
    const command = (...args: string[]) => runCli([...args, '--json', '--data-dir', all.dataDir]);
    const [render] = await sql`select id, generation from exercise_renders where status = 'ready' order by id limit 1`;
    const retried = await command('retry', '--force', render!.id);
    expect(retried.exitCode, retried.stderr).toBe(0);
    await waitFor(
      async () =>
        (
          await sql`select 1 from exercise_renders where id = ${render!.id} and status = 'ready' and generation > ${render!.generation}`
        ).count,
      { label: 'the render to be made anew', timeoutMs: 90_000, everyMs: 200 },
    );
    expect((await command('replay', '--unapplied')).exitCode).toBe(0);
    const doctor = await command('doctor', '--pipeline');
    expect(JSON.parse(doctor.stdout), doctor.stdout).toMatchObject({ ok: true, queues: { renders: { active: 0 } } });
    expect(doctor.exitCode).toBe(0);
  });
});
