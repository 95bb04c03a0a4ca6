import type { Recipe } from './recipe.ts';

interface Words {
  start: string;
  hold: string;
  rest: string;
  'next-set': string;
  'switch-side': string;
  'last-rep': string;
  done: string;
}

/** What the cues say, for captions and for players that draw them. */
const WORDS: Record<string, Words> = {
  en: {
    start: 'Start',
    hold: 'Hold',
    rest: 'Rest',
    'next-set': 'Next set',
    'switch-side': 'Switch sides',
    'last-rep': 'Last one',
    done: 'Well done',
  },
  de: {
    start: 'Los',
    hold: 'Halten',
    rest: 'Pause',
    'next-set': 'Nächster Satz',
    'switch-side': 'Seite wechseln',
    'last-rep': 'Letzte Wiederholung',
    done: 'Geschafft',
  },
  fr: {
    start: 'Commencez',
    hold: 'Tenez',
    rest: 'Repos',
    'next-set': 'Série suivante',
    'switch-side': 'Changez de côté',
    'last-rep': 'Dernière répétition',
    done: 'Bravo',
  },
  es: {
    start: 'Empiece',
    hold: 'Mantenga',
    rest: 'Descanso',
    'next-set': 'Siguiente serie',
    'switch-side': 'Cambie de lado',
    'last-rep': 'Última repetición',
    done: 'Muy bien',
  },
  it: {
    start: 'Via',
    hold: 'Mantieni',
    rest: 'Riposo',
    'next-set': 'Prossima serie',
    'switch-side': 'Cambia lato',
    'last-rep': 'Ultima ripetizione',
    done: 'Ben fatto',
  },
  pt: {
    start: 'Comece',
    hold: 'Segure',
    rest: 'Descanso',
    'next-set': 'Próxima série',
    'switch-side': 'Troque de lado',
    'last-rep': 'Última repetição',
    done: 'Muito bem',
  },
  ro: {
    start: 'Începeți',
    hold: 'Mențineți',
    rest: 'Pauză',
    'next-set': 'Setul următor',
    'switch-side': 'Schimbați partea',
    'last-rep': 'Ultima repetare',
    done: 'Bravo',
  },
};

const ENGLISH = WORDS.en as Words;

/** The caption of a cue in the recipe's language; English where the language is not known. */
export function cueText(recipe: Pick<Recipe, 'language'>, name: string): string {
  const number = /^count(?:down)?-(\d+)$/.exec(name)?.[1];
  if (number !== undefined) return number;
  const words = WORDS[recipe.language.split('-')[0] ?? 'en'] ?? ENGLISH;
  return words[name as keyof Words];
}
