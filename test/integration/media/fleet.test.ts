import { afterEach, describe, expect, it } from 'vitest';
import { createFleet } from '../../../lib/media/fleet.ts';
import { type ScriptedMedia, startScriptedMedia } from '../../support/scripted-media.ts';
import { requestFor } from './harness.ts';

/** Nothing listens there. */
const DEAD = 'http://127.0.0.1:1';

const running: ScriptedMedia[] = [];
afterEach(async () => {
  for (const media of running.splice(0)) await media.close();
});

async function start(): Promise<ScriptedMedia> {
  const media = await startScriptedMedia();
  running.push(media);
  return media;
}

const fleetOf = (targets: string[], token = 'scripted-media-token') => createFleet({ targets, token, timeoutMs: 300 });
const signal = () => AbortSignal.timeout(10_000);
async function* once(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('x');
}

describe('a fleet of media services', () => {
  it('bakes where it is told to, and nowhere else', async () => {
    const [a, b] = [await start(), await start()];
    const request = requestFor({ sha256: 'a'.repeat(64), location: 'zone:assets/platform/x' });
    const fleet = fleetOf([a.url, b.url]);
    await fleet.composeRender(b.url, request, { signal: signal(), silenceMs: 1_000 });
    expect([a.calls.length, b.calls.length]).toEqual([0, 1]);
    await expect(
      fleetOf([DEAD, b.url]).composeRender(DEAD, request, { signal: signal(), silenceMs: 1_000 }),
    ).rejects.toMatchObject({ code: 'media_unreachable' });
    expect(() => fleet.capacity('http://elsewhere.test')).toThrow(/no such media target/);
  });

  it('asks the next one where one is away or hangs, and begins with who answered last', async () => {
    const [hanging, live] = [await start(), await start()];
    live.videos.set('v', { state: 'finished' });
    expect(await fleetOf([DEAD, live.url]).videoStatus('v')).toMatchObject({ state: 'finished' });
    hanging.hangs = true;
    const fleet = fleetOf([hanging.url, live.url]);
    expect(await fleet.videoStatus('v')).toMatchObject({ state: 'finished' });
    const started = performance.now();
    expect(await fleet.videoStatus('v')).toMatchObject({ state: 'finished' });
    expect(performance.now() - started).toBeLessThan(250);
  });

  it('says why where nobody answers, and takes a verdict for one', async () => {
    await expect(fleetOf([DEAD, 'http://127.0.0.1:2']).videoStatus('v')).rejects.toMatchObject({
      code: 'media_unreachable',
    });
    const [a, b] = [await start(), await start()];
    a.videos.set('v', { lengthSeconds: 'long' as unknown as number });
    await expect(fleetOf([a.url, b.url]).videoStatus('v')).rejects.toMatchObject({ code: 'media_protocol' });
  });

  it('sends an upload once, to one that answers and takes new work', async () => {
    const [draining, live] = [await start(), await start()];
    draining.capacity.draining = true;
    const fleet = fleetOf([DEAD, draining.url, live.url]);
    const answer = await fleet.uploadAsset({ tier: 'platform', kind: 'source', body: once() }, { signal: signal() });
    expect(answer.location).toBe('zone:assets/x');
    expect([draining.uploads.length, live.uploads.length]).toEqual([0, 1]);
    live.capacity.draining = true;
    await expect(
      fleetOf([draining.url, live.url]).uploadAsset(
        { tier: 'platform', kind: 'source', body: once() },
        { signal: signal() },
      ),
    ).rejects.toMatchObject({ code: 'media_draining' });
  });
});
