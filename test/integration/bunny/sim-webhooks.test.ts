import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SIM_DEFAULTS } from '../../../apps/bunny-sim/sim.ts';
import { verifyWebhook } from '../../../lib/bunny/webhook.ts';
import { makeClip } from '../../support/ffmpeg.ts';
import { makeTempDir } from '../../support/temp-dir.ts';
import { waitFor } from '../../support/wait.ts';
import { type RunningSim, startReceiver, startSim } from './harness.ts';

const WHOLE = [0, 1, 1, 2, 4, 4, 3];
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let sim: RunningSim;
let clip: string;

beforeAll(async () => {
  clip = await makeClip(await makeTempDir());
  receiver = await startReceiver();
  sim = await startSim({ webhookUrl: receiver.url });
});
afterEach(() => fetch(`${sim.streamUrl}/sim/faults`, { method: 'DELETE' }));
afterAll(async () => {
  await sim.close();
  await receiver.close();
});

async function upload(title: string): Promise<string> {
  const { guid } = await sim.stream.create({ title });
  await sim.stream.upload(guid, clip);
  return guid;
}
const received = (guid: string, count: number) =>
  waitFor(() => (receiver.statuses(guid).length >= count ? receiver.statuses(guid) : undefined), {
    label: `${count} webhooks`,
  });
const delivered = async (guid: string) => (await sim.log()).deliveries.filter((each) => each.guid === guid);

describe('webhooks', () => {
  it('come once each and in the measured order, the API having changed before', async () => {
    const guid = await upload('plain');
    expect(await received(guid, 7)).toEqual(WHOLE);
    expect((await sim.state(guid)).state).toBe('finished');
  });

  it('are sent again after a reencode', async () => {
    const guid = await upload('again');
    await received(guid, 7);
    await sim.stream.reencode(guid);
    expect(await received(guid, 14)).toEqual([...WHOLE, ...WHOLE]);
  });

  it('are not repeated when the receiver fails', async () => {
    const failing = await startReceiver(500);
    const other = await startSim({ webhookUrl: failing.url });
    try {
      const { guid } = await other.stream.create({ title: 'refused' });
      await other.stream.upload(guid, clip);
      const deliveries = await waitFor(
        async () => {
          const log = await other.log();
          return log.deliveries.length === 7 ? log.deliveries : undefined;
        },
        { label: 'seven deliveries' },
      );
      expect(deliveries.every((each) => each.answer === 500)).toBe(true);
      expect(failing.statuses(guid)).toEqual(WHOLE);
    } finally {
      await other.close();
      await failing.close();
    }
  });

  it('go nowhere where the receiver is down, and the transcode does not mind', async () => {
    const other = await startSim({ webhookUrl: 'http://127.0.0.1:1/hook' });
    try {
      const { guid } = await other.stream.create({ title: 'down' });
      await other.stream.upload(guid, clip);
      expect((await other.ended(guid)).state).toBe('finished');
    } finally {
      await other.close();
    }
  });

  it('can be lost, one by one, and the log knows', async () => {
    await sim.faults({ webhooks: { lost: { match: 'status=3' } } });
    const guid = await upload('lost');
    await waitFor(async () => (await delivered(guid)).length === 7, { label: 'seven entries' });
    expect(receiver.statuses(guid)).toEqual([0, 1, 1, 2, 4, 4]);
    expect((await delivered(guid)).at(-1)).toMatchObject({ status: 3, kind: 'lost' });
  });

  it('can be switched off', async () => {
    await sim.faults({ webhooks: { off: true } });
    const guid = await upload('off');
    await sim.ended(guid);
    expect(await delivered(guid)).toEqual([]);
  });

  it('can come doubled', async () => {
    await sim.faults({ webhooks: { doubled: { match: 'status=3' } } });
    expect(await received(await upload('doubled'), 8)).toEqual([...WHOLE, 3]);
  });

  it('can come in reverse', async () => {
    await sim.faults({ webhooks: { reordered: 1 } });
    expect(await received(await upload('reversed'), 7)).toEqual([...WHOLE].reverse());
    expect(await received(await upload('in order'), 7)).toEqual(WHOLE);
  });

  it('can come before the upload is answered', async () => {
    await sim.faults({ webhooks: { early: true } });
    const guid = await upload('early');
    expect(receiver.statuses(guid)).toEqual(WHOLE);
  });

  it('can come late', async () => {
    await sim.faults({ webhooks: { late: 300 } });
    const started = Date.now();
    const guid = await upload('late');
    await received(guid, 1);
    expect(Date.now() - started).toBeGreaterThanOrEqual(300);
    expect((await sim.state(guid)).state).toBe('finished');
    expect(await received(guid, 7)).toEqual(WHOLE);
  });

  it('can be forged: a "finished" too early, which the signature gives away', async () => {
    await sim.faults({ webhooks: { forged: 1 } });
    const guid = await upload('forged');
    expect(await received(guid, 8)).toEqual([3, ...WHOLE]);
    const verdicts = receiver.hooks
      .filter((hook) => hook.guid === guid)
      .map(({ rawBody, headers, url }) =>
        verifyWebhook({ rawBody, headers, url, keys: [SIM_DEFAULTS.readOnlyKey], token: 'receiver-token' }),
      );
    expect(verdicts.map((verdict) => verdict.ok)).toEqual([false, ...WHOLE.map(() => true)]);
  });
});
