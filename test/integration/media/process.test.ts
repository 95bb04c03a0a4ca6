import { describe, expect, it } from 'vitest';
import { useAppProcesses } from '../../support/app-process.ts';
import { makeTempDir } from '../../support/temp-dir.ts';

const { spawnApp, startApp } = useAppProcesses();

const env = {
  MEDIA_TOKEN: 'a-token-of-sixteen-or-more',
  BUNNY_CDN_URL: 'http://127.0.0.1:1',
  BUNNY_STORAGE_CDN_URL: 'http://127.0.0.1:2',
  BUNNY_LIBRARY_ID: '1',
  BUNNY_STREAM_KEY: 'a-stream-key-of-sixteen',
  BUNNY_STORAGE_ZONE: 'zone',
  BUNNY_STORAGE_KEY: 'a-storage-key-of-sixteen',
  LOG_LEVEL: 'warn',
};

describe('the media service as a process', () => {
  it('runs with no database and no Redis configured at all, and leaves with 0 when told to', async () => {
    const dir = await makeTempDir();
    const { child, ready } = await startApp('media', {
      ...env,
      MEDIA_CACHE_DIR: `${dir}/cache`,
      MEDIA_WORK_DIR: `${dir}/work`,
    });
    expect((await fetch(`${ready.url}/readyz`)).status).toBe(200);
    const headers = { authorization: `Bearer ${env.MEDIA_TOKEN}` };
    expect(await (await fetch(`${ready.url}/capacity`, { headers })).json()).toEqual({
      instance: expect.any(String),
      slots: 2,
      busy: 0,
      draining: false,
    });
    child.kill('SIGTERM');
    expect((await child).exitCode).toBe(0);
  });

  it('refuses to start without its credentials, naming every variable that is missing', async () => {
    const { exitCode, stderr } = await spawnApp('media', {});
    expect(exitCode).toBe(1);
    for (const name of [
      'MEDIA_TOKEN',
      'BUNNY_CDN_URL',
      'BUNNY_LIBRARY_ID',
      'BUNNY_STREAM_KEY',
      'BUNNY_STORAGE_ZONE',
      'BUNNY_STORAGE_KEY',
    ]) {
      expect(stderr).toMatch(new RegExp(`${name}: `));
    }
  });

  it('refuses to start where ffmpeg is not what it is said to be', async () => {
    const { exitCode, stderr } = await spawnApp('media', {
      ...env,
      FFMPEG_PATH: '/bin/true',
      FFPROBE_PATH: '/bin/true',
    });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/does not introduce itself as ff/);
  });
});
