import { afterEach, describe, expect, it, vi } from 'vitest';
import { createAnnouncer } from '../../lib/announce.ts';
import { silentLog } from '../support/log.ts';
import { useTestDatabase } from '../support/test-db.ts';

const database = useTestDatabase();

const aBell = () => {
  const rings: string[][] = [];
  return { rings, bell: { ring: async (ids: readonly string[]) => void rings.push([...ids]) } };
};
const ids = ['a', 'b', 'c'].map((digit) => `${digit.repeat(8)}-0000-7000-8000-000000000000`);

afterEach(() => {
  vi.useRealTimers();
});

describe('an announcer', () => {
  it('says at once what was changed, and together what may be said soon', async () => {
    const { rings, bell } = aBell();
    const announcer = createAnnouncer(database.db, bell, silentLog);
    const [a = '', b = '', c = ''] = ids;
    // What is gathered must not become due before the rest is said.
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    announcer.changedSoon({ programs: [a] });
    vi.useRealTimers();
    announcer.changedSoon({ programs: [b, a] });
    await announcer.changed({ programs: [c] });
    expect(rings).toEqual([[c]]);
    await announcer.close();
    expect(rings).toEqual([[c], [a, b]]);
  });

  it('says by itself what was gathered', async () => {
    const { rings, bell } = aBell();
    const announcer = createAnnouncer(database.db, bell, silentLog);
    announcer.changedSoon({ programs: ids });
    await expect.poll(() => rings).toEqual([ids]);
  });

  it('fails nobody where it cannot say it, and is waited for at the end', async () => {
    const bell = { ring: () => Promise.reject(new Error('no bell')) };
    const announcer = createAnnouncer(database.db, bell, silentLog);
    await announcer.changed({ programs: ids });
    announcer.changedSoon({ renders: ['not an id'] });
    await announcer.close();
  });
});
