/** The name in this language, else in its base language, else in English, else in any. */
export function nameIn(names: Readonly<Record<string, string>>, language: string): string {
  const base = language.split('-')[0] ?? language;
  return names[language] ?? names[base] ?? names.en ?? Object.values(names)[0] ?? '';
}
