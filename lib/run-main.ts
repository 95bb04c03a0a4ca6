import { ConfigError } from './config/env.ts';

/**
 * Runs an app's composition root. What keeps it from starting is said on stderr, a wrong configuration in its own words
 * and a defect with its stack, and the process leaves with 1.
 */
export function runMain(main: () => Promise<void>): void {
  main().catch((error: unknown) => {
    const text = error instanceof ConfigError ? error.message : error instanceof Error ? error.stack : String(error);
    process.stderr.write(`${text}\n`);
    process.exit(1);
  });
}
