import { execa } from 'execa';

/** The first line that a program prints for `--version`. */
export async function programVersion(file: string): Promise<string> {
  const { stdout } = await execa(file, ['--version'], { timeout: 10_000, cwd: '/' });
  return stdout.split('\n')[0] ?? '';
}
