import { describe, expect, it } from 'vitest';
import { nameIn } from '../../../apps/edge/names.ts';

describe('the name of an exercise', () => {
  const names = { en: 'Squat', de: 'Kniebeuge', 'de-AT': 'Hocke' };
  it.each([
    ['de-AT', 'Hocke'],
    ['de-CH', 'Kniebeuge'],
    ['fr', 'Squat'],
  ])('in %s is %s', (language, name) => {
    expect(nameIn(names, language)).toBe(name);
  });

  it('is any there is where none fits', () => {
    expect(nameIn({ ro: 'Genuflexiune' }, 'fr')).toBe('Genuflexiune');
    expect(nameIn({}, 'fr')).toBe('');
  });
});
