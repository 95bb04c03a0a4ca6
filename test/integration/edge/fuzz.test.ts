import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { fuzz, tableOf } from '../../fuzz/drive.ts';
import { type Scene, setScene } from '../../fuzz/scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await setScene();
});
afterAll(() => scene.close());

it('answers whatever it is sent as its document says, and never with a failure of its own', {
  timeout: 30 * 60_000,
}, async () => {
  const asked = inject('fuzz');
  const options = asked ?? { seed: 1, requests: 400 };
  const outcome = await fuzz(scene, options);
  if (asked) process.stderr.write(`\nseed ${options.seed}, ${options.requests} requests\n\n${tableOf(outcome)}\n\n`);
  expect(Object.fromEntries(outcome.faults)).toEqual({});
  const unheard = [...outcome.counts].filter(([, statuses]) => statuses.size === 0).map(([name]) => name);
  expect(unheard).toEqual([]);
});
