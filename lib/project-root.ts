/** The project's folder, with package.json and drizzle/ in it: the sources are there, the build output is in its dist/. */
export const PROJECT_ROOT = new URL(import.meta.url.endsWith('.ts') ? '../' : '../../', import.meta.url);
