import { cp, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { makeTempDir } from '../../support/temp-dir.ts';

/** A file, what it imports, and whether the linter must refuse it. */
const CASES: [file: string, imported: string, verdict: 'refused' | 'allowed'][] = [
  ['lib/domain/a.ts', 'drizzle-orm', 'refused'],
  ['lib/domain/b.ts', '../db/client.ts', 'refused'],
  ['lib/domain/c.ts', '../errors.ts', 'refused'],
  ['lib/domain/d.ts', './recipe.ts', 'allowed'],
  ['lib/audio/a.ts', '../cache/limiter.ts', 'refused'],
  ['lib/audio/b.ts', 'hono', 'refused'],
  ['lib/db/a.ts', 'postgres', 'allowed'],
  ['lib/db/b.ts', 'drizzle-orm/pg-core', 'allowed'],
  ['lib/db/c.ts', 'bullmq', 'refused'],
  ['lib/queue/a.ts', 'bullmq', 'allowed'],
  ['lib/queue/b.ts', 'ioredis', 'allowed'],
  ['lib/queue/c.ts', 'drizzle-orm', 'refused'],
  ['lib/cache/a.ts', 'ioredis', 'allowed'],
  ['lib/cache/b.ts', 'bullmq', 'refused'],
  ['lib/media/a.ts', '../db/renders.ts', 'refused'],
  ['lib/media/b.ts', '../queue/jobs.ts', 'refused'],
  ['lib/media/c.ts', '../cache/inspect.ts', 'refused'],
  ['lib/media/d.ts', '../ffmpeg/run.ts', 'allowed'],
  ['lib/media/e.ts', 'node:child_process', 'refused'],
  ['lib/ffmpeg/a.ts', 'node:child_process', 'allowed'],
  ['lib/services/a.ts', 'execa', 'allowed'],
  ['lib/bunny/a.ts', 'execa', 'refused'],
  ['lib/bunny/b.ts', 'hono/http-exception', 'refused'],
  ['lib/bunny/c.ts', '../../apps/edge/app.ts', 'refused'],
  ['lib/bunny/d.ts', '../../test/support/wait.ts', 'refused'],
  ['apps/edge/a.ts', 'hono', 'allowed'],
  ['apps/edge/b.ts', 'postgres', 'refused'],
  ['apps/edge/c.ts', '../worker/worker.ts', 'refused'],
  ['apps/edge/routes/d.ts', '../../media/app.ts', 'refused'],
  ['apps/edge/routes/e.ts', '../../../lib/media/contract.ts', 'allowed'],
  ['apps/edge/f.ts', '../../test/support/wait.ts', 'refused'],
  ['apps/worker/a.ts', '../edge/app.ts', 'refused'],
  ['apps/worker/handlers/b.ts', '../../../lib/queue/jobs.ts', 'allowed'],
  ['apps/media/a.ts', '../../lib/db/client.ts', 'refused'],
  ['apps/media/routes/b.ts', '../../../lib/queue/queues.ts', 'refused'],
  ['apps/media/c.ts', '../../lib/cache/inspect.ts', 'refused'],
  ['apps/bunny-sim/a.ts', '../media/app.ts', 'refused'],
  ['apps/cli/a.ts', 'execa', 'allowed'],
  ['apps/cli/b.ts', 'ioredis', 'refused'],
];

const reportSchema = z.object({
  diagnostics: z.array(z.looseObject({ category: z.string(), location: z.looseObject({ path: z.unknown() }) })),
});

const root = join(import.meta.dirname, '../../..');
let refused: Map<string, string[]>;

beforeAll(async () => {
  const dir = await makeTempDir();
  await cp(join(root, 'biome.json'), join(dir, 'biome.json'));
  await cp(join(root, 'package.json'), join(dir, 'package.json'));
  const files = new Map(
    CASES.map(([file, imported]) => [file, `import * as all from '${imported}';\n\nconsole.log(all);\n`]),
  );
  files.set('lib/bunny/env.ts', 'console.log(process.env.HOME);\n');
  files.set('lib/config/env.ts', 'console.log(process.env.HOME);\n');
  files.set('lib/bunny/one.ts', "import { two } from './two.ts';\n\nexport const one = () => two;\n");
  files.set('lib/bunny/two.ts', "import { one } from './one.ts';\n\nexport const two = () => one;\n");
  for (const [file, text] of files) {
    await mkdir(dirname(join(dir, file)), { recursive: true });
    await writeFile(join(dir, file), text);
  }
  const biome = join(root, 'node_modules/.bin/biome');
  const { stdout } = await execa(
    biome,
    ['lint', '--reporter=json', '--vcs-enabled=false', '--max-diagnostics=none', '.'],
    {
      cwd: dir,
      reject: false,
    },
  );
  refused = new Map();
  for (const { category, location } of reportSchema.parse(JSON.parse(stdout)).diagnostics) {
    const path = typeof location.path === 'string' ? location.path : JSON.stringify(location.path);
    for (const file of files.keys())
      if (path.includes(file)) refused.set(file, [...(refused.get(file) ?? []), category]);
  }
});

describe('the linter', () => {
  it.each(CASES)('judges that %s importing %s is %s', (file, _, verdict) => {
    expect((refused.get(file) ?? []).includes('lint/style/noRestrictedImports')).toBe(verdict === 'refused');
  });

  it('lets only lib/config read the environment', () => {
    expect(refused.get('lib/bunny/env.ts')).toContain('lint/style/noProcessEnv');
    expect(refused.get('lib/config/env.ts') ?? []).not.toContain('lint/style/noProcessEnv');
  });

  it('refuses a cycle of imports', () => {
    expect(refused.get('lib/bunny/one.ts')).toContain('lint/suspicious/noImportCycles');
  });
});
