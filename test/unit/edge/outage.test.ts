import { describe, expect, it } from 'vitest';
import { isDatabaseAway } from '../../../lib/db/outage.ts';

const failure = (code: unknown, cause?: Error) => Object.assign(new Error('failed', { cause }), { code });

describe('a failure of Postgres', () => {
  it.each(['ECONNREFUSED', 'ETIMEDOUT', 'EAI_AGAIN', '08006', '57P01', '57014', '53300', '40P01'])(
    '%s says that it is away, whatever wraps it',
    (code) => {
      expect(isDatabaseAway(failure(code))).toBe(true);
      expect(isDatabaseAway(new Error('Failed query', { cause: failure(code) }))).toBe(true);
    },
  );

  it.each(['23505', '42601', '22P05', undefined, 57014])('%s says that the statement is wrong', (code) => {
    expect(isDatabaseAway(failure(code))).toBe(false);
    expect(isDatabaseAway(new Error('Failed query', { cause: failure(code) }))).toBe(false);
  });

  it('is no failure where nothing of the kind was thrown', () => {
    for (const thrown of [new Error('x'), 'ECONNREFUSED', null, { code: 'ECONNREFUSED' }]) {
      expect(isDatabaseAway(thrown)).toBe(false);
    }
  });
});
