import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const WEIGHT = ['/test/e2e/', '/test/integration/media/', '/test/integration/pipeline/', '/test/integration/worker/'];

/** The slow files first, so that none of them is left for one worker at the end; a file's size says little of its time. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const weight = ({ moduleId }: TestSpecification) => {
      const at = WEIGHT.findIndex((part) => moduleId.includes(part));
      return at === -1 ? WEIGHT.length : at;
    };
    return [...(await super.sort(files))].sort((a, b) => weight(a) - weight(b));
  }
}

export default defineConfig({
  test: {
    include: ['test/{unit,integration,e2e}/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // A worker loads the program once, not once a file, which was a fifth of the run. So files share a process: what one
    // leaves behind (a timer, a listener, a child) is a defect of it that shows.
    isolate: false,
    maxWorkers: 2,
    sequence: { sequencer: SlowFirst },
    // For a test that hangs, not for how fast anything is: real encoders share two cores with another file's.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
  },
});
