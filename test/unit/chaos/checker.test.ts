import { describe, expect, it } from 'vitest';
import { violationsOf } from '../../chaos/checker/check.ts';
import type { Evidence, Invariant } from '../../chaos/checker/evidence.ts';
import { evidenceOf, incident, type Life, PLAIN } from './evidence.ts';

const broken = (evidence: Evidence): Invariant[] => [...new Set(violationsOf(evidence).map((each) => each.invariant))];

/** The evidence of one plain life, with something changed. */
function changed(change: (evidence: Evidence) => void, life: Life = PLAIN): Evidence {
  const evidence = evidenceOf({ one: { life } });
  change(evidence);
  return evidence;
}

const HARD_LIFE: Life = [
  ['pending', 'published', 0],
  ['rendering', 'claim', 1, 'a'],
  ['pending', 'lease-expired', 1],
  ['rendering', 'claim', 2, 'b'],
  ['pending', 'media_busy', 1, 'b'],
  ['rendering', 'claim', 2, 'c'],
  ['pending', 'retry', 2, 'c'],
  ['rendering', 'claim', 3, 'd'],
  ['transcoding', 'uploaded', 3, 'd'],
  ['pending', 'backstop', 3],
  ['rendering', 'claim', 4, 'e'],
  ['transcoding', 'uploaded', 4, 'e'],
  ['ready', 'backstop', 4],
];

describe('a run in which everything held', () => {
  it('breaks nothing, be the lives plain or hard', () => {
    expect(violationsOf(evidenceOf({ one: {}, two: { life: HARD_LIFE, at: 500 } }))).toEqual([]);
  });
});

describe('nothing-lost', () => {
  it('misses a publish that never got its 202', () => {
    expect(broken(changed((run) => run.answers.push({ ...run.answers[0]!, counts: null, refusal: '503' })))).toEqual([
      'nothing-lost',
    ]);
  });
  it('misses a programme that was answered 202 and is no longer published', () => {
    expect(broken(changed((run) => Object.assign(run.programs[0]!, { status: 'draft' })))).toEqual(['nothing-lost']);
    expect(broken(changed((run) => run.programs.pop()))).toEqual(['nothing-lost']);
  });
  it('misses an item without a render, and a render that was promised', () => {
    expect(broken(changed((run) => run.programs[0]!.renderIds.push(null)))).toEqual(['nothing-lost']);
    expect(broken(changed((run) => Object.assign(run.answers[0]!.counts!, { total: 2, queued: 2 })))).toEqual([
      'nothing-lost',
    ]);
  });
  it('misses counts that do not add up', () => {
    expect(broken(changed((run) => Object.assign(run.answers[0]!.counts!, { queued: 0 })))).toEqual(['nothing-lost']);
  });
  it.each(['pending', 'rendering', 'transcoding'] as const)('misses a render that is left %s', (status) => {
    const life = PLAIN.slice(0, 1 + ['pending', 'rendering', 'transcoding'].indexOf(status));
    expect(broken(evidenceOf({ one: { life } }))).toContain('nothing-lost');
  });
  it('misses a render that stays failed though it was published again with all faults over', () => {
    const life: Life = [...PLAIN.slice(0, 3), ['failed', 'webhook', 1]];
    const run = evidenceOf({ one: { life } });
    run.events.at(-1)!.errorCode = 'transcode_truncated';
    run.incidents.push(incident({ kind: 'bunny', what: 'truncatedFinish', on: {}, off: {}, forMs: 1 }));
    expect(broken(run)).toEqual(['nothing-lost']);
  });
});

describe('failed-explained', () => {
  const failing = (code: string, attempt: number): Evidence => {
    const life: Life = [
      ['pending', 'published', 0],
      ['rendering', 'claim', attempt, 'a'],
      ['failed', 'dead-letter', attempt, 'a'],
      ['pending', 'republished', 0],
      ['rendering', 'claim', 1, 'b'],
      ['transcoding', 'uploaded', 1, 'b'],
      ['ready', 'webhook', 1],
    ];
    const run = evidenceOf({ one: { life } });
    run.events[2]!.errorCode = code;
    return run;
  };
  it('accepts a code that something in the script explains', () => {
    const run = failing('transcode_truncated', 1);
    run.incidents.push(incident({ kind: 'bunny', what: 'truncatedFinish', on: {}, off: {}, forMs: 1 }));
    expect(broken(run)).toEqual([]);
  });
  it('refuses a code that nothing in the script explains, also where the fault in question never struck', () => {
    expect(broken(failing('transcode_truncated', 1))).toEqual(['failed-explained']);
    const run = failing('transcode_truncated', 1);
    const missed = incident({ kind: 'bunny', what: 'truncatedFinish', on: {}, off: {}, forMs: 1 });
    run.incidents.push({ ...missed, struck: false });
    expect(broken(run)).toEqual(['failed-explained']);
  });
  it('refuses a dead-letter with attempts left, where trying again might have helped', () => {
    const run = failing('storage_failed', 1);
    run.incidents.push(incident({ kind: 'bunny', what: 'rate5xx', on: {}, off: {}, forMs: 1 }));
    expect(broken(run)).toEqual(['failed-explained']);
  });
});

describe('legal-history', () => {
  it('sees an event that does not follow from the one before', () => {
    expect(broken(changed((run) => run.events.splice(2, 1)))).toContain('legal-history');
  });
  it('sees a ready render that was left without a requeue', () => {
    const run = evidenceOf({
      one: { life: [...PLAIN, ['pending', 'republished', 0], ...PLAIN.slice(1).map(rename)] },
    });
    expect(broken(run)).toEqual([]);
    for (const event of run.events) event.generation = 0;
    run.renders[0]!.generation = 0;
    expect(broken(run)).toContain('legal-history');
  });
});

const rename = ([to, cause, attempt, token]: Life[number]): Life[number] =>
  token === undefined ? [to, cause, attempt] : [to, cause, attempt, `${token}2`];

describe('one-writer', () => {
  it('sees the late write of a zombie: the token of a claim before the last', () => {
    const life = HARD_LIFE.map((event, index) =>
      index === 8 ? ([...event.slice(0, 3), 'a'] as unknown as typeof event) : event,
    );
    expect(broken(evidenceOf({ one: { life } }))).toEqual(['one-writer']);
  });
  it('sees a fenced move that carries no token', () => {
    expect(broken(changed((run) => Object.assign(run.events[2]!, { leaseToken: null })))).toEqual(['one-writer']);
  });
  it('sees one token used by claims of two renders', () => {
    const run = evidenceOf({ one: {}, two: {} });
    for (const event of run.events) if (event.leaseToken) event.leaseToken = 'the same';
    expect(broken(run)).toEqual(['one-writer']);
  });
});

describe('attempts', () => {
  it('sees a shutdown or a full media service that cost an attempt', () => {
    const life: Life = [
      ['pending', 'published', 0],
      ['rendering', 'claim', 1, 'a'],
      ['pending', 'shutdown', 1, 'a'],
      ['rendering', 'claim', 2, 'b'],
      ['transcoding', 'uploaded', 2, 'b'],
      ['ready', 'webhook', 2],
    ];
    expect(broken(evidenceOf({ one: { life } }))).toEqual(['attempts']);
  });
  it('sees a crash that cost none', () => {
    const life: Life = [
      ['pending', 'published', 0],
      ['rendering', 'claim', 1, 'a'],
      ['pending', 'lease-expired', 0, 'a'],
      ...PLAIN.slice(1).map(rename),
    ];
    expect(broken(evidenceOf({ one: { life } }))).toContain('attempts');
  });
  it('sees more attempts than the row allows', () => {
    expect(broken(changed((run) => Object.assign(run.renders[0]!, { maxAttempts: 0 })))).toEqual(['attempts']);
  });
});

describe('rows-match-history', () => {
  it('sees a row that was changed without an event', () => {
    expect(broken(changed((run) => Object.assign(run.renders[0]!, { attempts: 2 })))).toEqual(['rows-match-history']);
  });
});

describe('one-bake-per-key', () => {
  it('sees two rows of one recipe', () => {
    const run = evidenceOf({ one: {}, two: {} });
    run.renders[1]!.recipeHash = run.renders[0]!.recipeHash;
    expect(broken(run)).toContain('one-bake-per-key');
  });
  it('sees a recipe that nobody published', () => {
    expect(broken(changed((run) => Object.assign(run, { recipes: 2 })))).toEqual(['one-bake-per-key']);
  });
  it('sees a second upload that no lost transcode explains', () => {
    const life: Life = HARD_LIFE.map((event) =>
      event[1] === 'backstop' && event[0] === 'pending' ? ['pending', 'requeued by hand', 3] : event,
    );
    const run = evidenceOf({ one: { life } });
    // As if the row had gone back to pending by no move at all.
    run.events = run.events.filter((event) => event.cause !== 'requeued by hand');
    expect(broken(run)).toContain('one-bake-per-key');
  });
  it('sees more videos with bytes than there were claims, and forgives an empty one', () => {
    const copy = (state: 'created' | 'finished') =>
      changed((run) => {
        run.videos = {
          ...run.videos,
          before: [...run.videos.before, { ...run.videos.before[0]!, guid: 'copy', state }],
        };
      });
    expect(broken(copy('finished'))).toEqual(['one-bake-per-key']);
    expect(broken(copy('created'))).toEqual([]);
  });
});

describe('no-orphan', () => {
  it('sees a video that no row names, and one that a row names in vain', () => {
    expect(
      broken(
        changed((run) => {
          run.videos = { ...run.videos, after: [...run.videos.after, { guid: 'x', title: 'x', state: 'created' }] };
        }),
      ),
    ).toEqual(['no-orphan']);
    expect(
      broken(
        changed((run) => {
          run.videos = { ...run.videos, after: [] };
        }),
      ),
    ).toContain('no-orphan');
  });
});

describe('ready-plays', () => {
  it('sees a ready render whose video is not finished', () => {
    const run = changed((each) => {
      each.videos = { ...each.videos, after: each.videos.after.map((video) => ({ ...video, state: 'processing' })) };
    });
    expect(broken(run)).toEqual(['ready-plays']);
  });
  it.each([
    ['a manifest that cannot be read', { masterSha256: null, problem: 'not there' }],
    ['a manifest of another master', { masterSha256: 'other', problem: null }],
  ])('sees %s', (_, stored) => {
    expect(
      broken(
        changed((run) => {
          run.stored = new Map([['one', stored]]);
        }),
      ),
    ).toEqual(['ready-plays']);
  });
  it('sees files that were never looked at', () => {
    expect(
      broken(
        changed((run) => {
          run.stored = new Map();
        }),
      ),
    ).toEqual(['ready-plays']);
  });
});

describe('inbox', () => {
  it('sees that two deliveries of the same body became one row', () => {
    expect(broken(changed((run) => run.inbox.splice(0, 1)))).toEqual(['inbox']);
  });
  it('sees a row more than was delivered, but for a delivery whose answer was lost', () => {
    const run = changed((each) => each.inbox.push(each.inbox[0]!));
    expect(broken(run)).toEqual(['inbox']);
    run.deliveries.push({ ...run.deliveries[0]!, answer: 'TypeError: fetch failed' });
    expect(broken(run)).toEqual([]);
  });
  it('sees a row for a video that was never delivered, and a forged delivery that was taken', () => {
    expect(
      broken(
        changed((run) =>
          run.inbox.push({
            ...{ videoGuid: 'x', status: 3, body: '{"VideoGuid":"x","Status":3}', applied: true, outcome: 'ready' },
          }),
        ),
      ),
    ).toEqual(['inbox']);
    expect(
      broken(
        changed((run) => {
          run.deliveries[0]!.kind = 'forged';
        }),
      ),
    ).toEqual(['inbox']);
  });
  it('sees a body that is not the one that was delivered', () => {
    expect(broken(changed((run) => Object.assign(run.inbox[0]!, { body: '{"Status":1}' })))).toEqual(['inbox']);
  });
  it('sees an event that was never applied, unless its video is no render’s any more', () => {
    const unapplied = { applied: false, outcome: 'unknown-video' };
    expect(broken(changed((run) => Object.assign(run.inbox[0]!, unapplied)))).toEqual(['inbox']);
    const run = changed((each) => {
      const stray = { ...each.inbox[0]!, ...unapplied, videoGuid: 'x', body: '{"VideoGuid":"x","Status":1}' };
      each.inbox.push(stray);
      each.deliveries.push({ guid: 'x', status: 1, kind: 'normal', answer: 200 });
    });
    expect(broken(run)).toEqual([]);
  });
});

describe('ready-stays-ready', () => {
  it('sees an edge that says less than another had said before it was asked', () => {
    const late = { programId: 'program', edge: 'one', askedAt: 10_006, answeredAt: 10_007, status: 'preparing' };
    expect(broken(changed((run) => run.polls.push(late)))).toEqual(['ready-stays-ready']);
    const overlapping = { ...late, askedAt: 10_004 };
    expect(broken(changed((run) => run.polls.push(overlapping)))).toEqual([]);
  });
});
