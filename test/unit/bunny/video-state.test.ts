import { describe, expect, it } from 'vitest';
import { videoModel } from '../../../lib/bunny/models.ts';
import { videoState, WEBHOOK_STATUS, webhookStatus } from '../../../lib/bunny/video-state.ts';

const model = (fields: Record<string, unknown>) => videoModel.parse({ guid: 'g', title: 't', status: 0, ...fields });
const state = (fields: Record<string, unknown>) => videoState(model(fields));

describe('webhookStatus', () => {
  it('reads 3 as finished and 4 as one resolution, unlike the API', () => {
    expect(webhookStatus(3)).toBe('finished');
    expect(webhookStatus(4)).toBe('resolution-finished');
    expect(state({ status: 3 }).state).toBe('processing');
    expect(state({ status: 4 }).state).toBe('finished');
  });

  it('gives every documented number its meaning and ignores the others', () => {
    const meanings = Object.values(WEBHOOK_STATUS).map(webhookStatus);
    expect(meanings).toEqual([
      'progress',
      'progress',
      'progress',
      'finished',
      'resolution-finished',
      'failed',
      'ignored',
      'ignored',
      'failed',
      'ignored',
      'ignored',
    ]);
    for (const unknown of [-1, 11, 3.5, Number.NaN]) expect(webhookStatus(unknown)).toBe('ignored');
  });
});

describe('videoState', () => {
  it('gives every documented API status its state and takes an unknown one for work under way', () => {
    const states = [0, 1, 2, 3, 4, 5, 6, 7, 8, 99].map((status) => state({ status }).state);
    expect(states).toEqual([
      'created',
      'processing',
      'processing',
      'processing',
      'finished',
      'failed',
      'failed',
      'processing',
      'playable',
      'processing',
    ]);
    expect(state({ status: 6 }).status).toBe('UploadFailed');
    expect(state({ status: 99 }).status).toBe(99);
  });

  it('calls a transcoding video with a finished rung playable, and sorts the rungs', () => {
    const got = state({ status: 3, availableResolutions: '480p,720p,360p' });
    expect(got.state).toBe('playable');
    expect(got.availableResolutions).toEqual(['360p', '480p', '720p']);
  });

  it('fails a finished video that carries an error message, and only reports a warning', () => {
    const message = (level: number, issueCode: number) => [{ level, issueCode, message: 'm', value: 'v' }];
    expect(state({ status: 4, transcodingMessages: message(3, 7) }).state).toBe('failed');
    const warned = state({ status: 4, transcodingMessages: message(2, 2) });
    expect(warned.state).toBe('finished');
    expect(warned.messages).toEqual([{ level: 'warning', code: 'TranscodingWarnings', text: 'm: v' }]);
    expect(state({ status: 4, transcodingMessages: message(9, 99) }).messages).toEqual([
      { level: 'undefined', code: '99', text: 'm: v' },
    ]);
  });

  it('reads a time without a zone as UTC, and one with seven decimals', () => {
    expect(state({ dateUploaded: '2026-09-05T23:21:53.891' }).createdAt?.toISOString()).toBe(
      '2026-09-05T23:21:53.891Z',
    );
    expect(state({ dateUploaded: '2026-09-05T23:21:53.8912345Z' }).createdAt?.toISOString()).toBe(
      '2026-09-05T23:21:53.891Z',
    );
    expect(state({ dateUploaded: 'yesterday' }).createdAt).toBeUndefined();
  });

  it('survives nulls, empty strings, odd values and fields nobody has heard of', () => {
    const got = state({
      length: null,
      availableResolutions: null,
      transcodingMessages: null,
      collectionId: '',
      originalHash: 'ABCDEF',
      storageSize: 'many',
      newField: [1],
    });
    expect(got).toMatchObject({
      lengthSeconds: 0,
      availableResolutions: [],
      messages: [],
      collectionId: undefined,
      originalSha256: 'abcdef',
      storageBytes: 0,
    });
  });
});
