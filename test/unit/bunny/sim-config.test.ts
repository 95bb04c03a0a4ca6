import { describe, expect, it } from 'vitest';
import { loadBunnySimConfig } from '../../../lib/config/bunny-sim.ts';

const env = {
  SIM_DATA_DIR: '/tmp/sim',
  BUNNY_LIBRARY_ID: '133',
  BUNNY_STREAM_KEY: 'stream-key-0123456789',
  BUNNY_READ_ONLY_KEY: 'read-only-key-0123456789',
  BUNNY_STORAGE_ZONE: 'zone',
  BUNNY_STORAGE_KEY: 'storage-key-0123456789',
  BUNNY_STORAGE_READ_KEY: 'storage-read-key-0123456789',
};

describe("the simulator's configuration", () => {
  it('has defaults for all but the folder and the keys', () => {
    const config = loadBunnySimConfig(env);
    expect(config.SIM_FAULTS).toBeUndefined();
    expect(config).toMatchObject({
      SIM_HOST: '127.0.0.1',
      SIM_STREAM_PORT: 0,
      SIM_FAST: false,
      SIM_TRANSCODE_CONCURRENCY: 1,
      BUNNY_LIBRARY_ID: 133,
    });
    expect(loadBunnySimConfig({ ...env, SIM_FAULTS: '{"latencyMs":5}' }).SIM_FAULTS).toEqual({ latencyMs: 5 });
  });

  it('names every variable that is missing or wrong', () => {
    expect(() => loadBunnySimConfig({})).toThrow(/SIM_DATA_DIR[\s\S]*BUNNY_LIBRARY_ID[\s\S]*BUNNY_STREAM_KEY/);
    expect(() => loadBunnySimConfig({ ...env, SIM_FAULTS: '{' })).toThrow(/SIM_FAULTS: expects JSON/);
    expect(() => loadBunnySimConfig({ ...env, BUNNY_LIBRARY_ID: 'mine' })).toThrow(/BUNNY_LIBRARY_ID/);
  });

  it('refuses two keys that are the same', () => {
    const same = { ...env, BUNNY_READ_ONLY_KEY: env.BUNNY_STREAM_KEY };
    expect(() => loadBunnySimConfig(same)).toThrow(/keys that all differ/);
  });
});
