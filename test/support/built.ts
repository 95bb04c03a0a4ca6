import { join } from 'node:path';
import { inject } from 'vitest';

/** What the run's build made of a source, such as `apps/edge/main.ts`: a file for Node itself. */
export const built = (source: `${string}.ts`): string =>
  join(inject('buildDir'), 'dist', source.replace(/\.ts$/, '.js'));
