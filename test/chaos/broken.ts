import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Argument, Command } from 'commander';
import { execa } from 'execa';
import { z } from 'zod';
import { untilStopped } from '../../apps/cli/stack/until-stopped.ts';
import { BREAKAGES, breakSource } from './breakages.ts';

const root = join(import.meta.dirname, '../..');
const say = (text: string) => process.stderr.write(`${text}\n`);

const resultSchema = z.looseObject({
  held: z.boolean(),
  violations: z.array(z.looseObject({ invariant: z.string() })),
});

interface Flags {
  seed: string;
  seeds: string;
  minutes: string;
  renders: string;
}

/** A copy of everything that git tracks, as it is in the working tree, with one thing broken in it. */
async function brokenCopy(name: keyof typeof BREAKAGES): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'bakehouse-broken-'));
  await chmod(copy, 0o711);
  const { stdout } = await execa('git', ['ls-files', '-z'], { cwd: root });
  for (const file of stdout.split('\0').filter(Boolean)) {
    await mkdir(dirname(join(copy, file)), { recursive: true });
    await copyFile(join(root, file), join(copy, file));
  }
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  const { file, ...change } = BREAKAGES[name];
  const path = join(copy, file);
  await writeFile(path, breakSource(await readFile(path, 'utf8'), change));
  // What the runs leave behind goes with the copy.
  await mkdir(join(copy, 'tmp'), { mode: 0o711 });
  return copy;
}

/** Which invariants a run of this seed violates in the copy; none where it noticed nothing. Throws where it did not come to its end. */
async function caughtBy(copy: string, seed: number, flags: Flags, signal: AbortSignal): Promise<string[]> {
  const args = ['--seed', String(seed), '--minutes', flags.minutes, '--renders', flags.renders, '--json'];
  const { stdout, exitCode } = await execa(process.execPath, ['--import', 'tsx', 'test/chaos/main.ts', ...args], {
    cwd: copy,
    env: { TMPDIR: join(copy, 'tmp') },
    stderr: 'inherit',
    reject: false,
    cancelSignal: signal,
    gracefulCancel: false,
    forceKillAfterDelay: 60_000,
  });
  const last = stdout.trimEnd().split('\n').at(-1) ?? '';
  if (last === '') throw new Error(`the run of seed ${seed} ended with ${exitCode} and no result`);
  return [...new Set(resultSchema.parse(JSON.parse(last)).violations.map(({ invariant }) => invariant))];
}

async function hunt(name: keyof typeof BREAKAGES, flags: Flags, signal: AbortSignal): Promise<boolean> {
  const copy = await brokenCopy(name);
  try {
    const first = Number(flags.seed);
    for (let seed = first; seed < first + Number(flags.seeds) && !signal.aborted; seed++) {
      const invariants = await caughtBy(copy, seed, flags, signal);
      if (invariants.length === 0) continue;
      say(`\n“${name}” (${BREAKAGES[name].what}) was caught with seed ${seed} by: ${invariants.join(', ')}`);
      return true;
    }
    say(`\n“${name}” (${BREAKAGES[name].what}) was not caught`);
    return false;
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

new Command('broken')
  .description(
    'Proves that the chaos run can fail: breaks one thing in a copy of the code and looks for a seed that notices.',
  )
  .addArgument(new Argument('<name>', 'what to break').choices(Object.keys(BREAKAGES)))
  .option('--seed <number>', 'the first seed', '1')
  .option('--seeds <number>', 'how many seeds to try', '8')
  .option('--minutes <number>', 'of each run', '1.5')
  .option('--renders <number>', 'of each run', '40')
  .action(async (name: keyof typeof BREAKAGES, flags: Flags) => {
    await untilStopped(async (signal) => {
      if (!(await hunt(name, flags, signal))) process.exitCode = 1;
    });
  })
  .parseAsync()
  .catch((error: unknown) => {
    say(String(error));
    process.exitCode = 1;
  });
