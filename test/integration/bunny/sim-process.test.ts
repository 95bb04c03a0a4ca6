import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { createStreamClient } from '../../../lib/bunny/stream-client.ts';
import { built } from '../../support/built.ts';
import { makeClip } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';

const keys = {
  BUNNY_LIBRARY_ID: '133',
  BUNNY_STREAM_KEY: 'stream-key-0123456789',
  BUNNY_READ_ONLY_KEY: 'read-only-key-0123456789',
  BUNNY_STORAGE_ZONE: 'zone',
  BUNNY_STORAGE_KEY: 'storage-key-0123456789',
  BUNNY_STORAGE_READ_KEY: 'storage-read-key-0123456789',
};
const start = (env: Record<string, string>) =>
  execa(process.execPath, [built('apps/bunny-sim/main.ts')], {
    extendEnv: false,
    env: { PATH: process.env.PATH ?? '', ...env },
    reject: false,
    timeout: 25_000,
    killSignal: 'SIGKILL',
  });

describe('the simulator as a process', () => {
  it('says in one line where it listens, and on SIGTERM ends its ffmpeg and leaves with status 0', async () => {
    const dir = await makeTempDir();
    const child = start({ ...keys, SIM_DATA_DIR: `${dir}/data` });
    const lines = createInterface({ input: child.stdout });
    const { value } = await lines[Symbol.asyncIterator]().next();
    const ready = JSON.parse(String(value));
    expect(ready).toEqual({
      ready: true,
      streamUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      storageUrl: expect.stringMatching(/^http:/),
      cdnUrl: expect.stringMatching(/^http:/),
    });
    for (const url of [ready.streamUrl, ready.storageUrl, ready.cdnUrl]) {
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
    }
    const client = createStreamClient({ baseUrl: ready.streamUrl, libraryId: 133, apiKey: keys.BUNNY_STREAM_KEY });
    const { guid } = await client.create({ title: 'cut off' });
    await client.upload(guid, await makeClip(dir, { seconds: 12, size: '1280x720' }));
    await waitFor(async () => (await client.get(guid)).status === 3, { label: 'the transcode', everyMs: 10 });
    child.kill('SIGTERM');
    const { exitCode, stderr } = await child;
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('shutting down')]);
    const { stdout: processes } = await execa('ps', ['-eo', 'args']);
    expect(processes.split('\n').filter((args) => args.includes(guid))).toEqual([]);
  });

  it('does not start without its configuration, and names what is missing', async () => {
    const { exitCode, stderr } = await start({ ...keys, BUNNY_STREAM_KEY: 'short' });
    expect(exitCode).not.toBe(0);
    expect(stderr).toMatch(
      /configuration of bunny-sim is not valid[\s\S]*SIM_DATA_DIR[\s\S]*BUNNY_STREAM_KEY: expects at least 16/,
    );
    expect(stderr).not.toContain(keys.BUNNY_STORAGE_KEY);
    const misspelt = await start({ ...keys, SIM_DATA_DIR: await makeTempDir(), SIM_FAULTS: '{"latency":1}' });
    expect(misspelt.exitCode).not.toBe(0);
    expect(misspelt.stderr).toMatch(/SIM_FAULTS: .*latency/);
  });
});
