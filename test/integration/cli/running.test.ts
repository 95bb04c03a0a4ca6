import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  announceRunning,
  findInstallation,
  type Installation,
  requireMedia,
  withdrawRunning,
} from '../../../apps/cli/stack/running.ts';
import { loadCliConfig } from '../../../lib/config/cli.ts';
import { pipelineSchema } from '../../../lib/config/pipeline.ts';
import { makeTempDir } from '../../support/temp-dir.ts';

const running = {
  databaseUrl: 'postgres://here/bakehouse',
  redis: { url: 'redis://here', prefix: 'mine' },
  media: { targets: ['http://here:1'], token: 'a-token-of-enough-characters' },
  pipeline: pipelineSchema.parse({ SWEEP_MS: '250' }),
};
const find = (dataDir: string, env: Record<string, string> = {}): Promise<Installation> =>
  findInstallation(loadCliConfig({ BAKEHOUSE_DATA_DIR: dataDir, ...env }));

describe('the installation that a command works on', () => {
  it('is the one that runs on the data folder, until it says that it has stopped', async () => {
    const dataDir = await makeTempDir();
    await announceRunning(dataDir, running);
    expect(await find(dataDir)).toEqual(running);
    expect(await findInstallation(loadCliConfig({}), dataDir)).toEqual(running);
    await withdrawRunning(dataDir);
    await withdrawRunning(dataDir);
    await expect(find(dataDir)).rejects.toThrow(
      `No bakehouse runs on ${dataDir}. Start it with \`bakehouse up\`, name its folder with --data-dir, or set DATABASE_URL.`,
    );
  });

  it('is told to nobody but the owner of the folder', async () => {
    const dataDir = await makeTempDir();
    await announceRunning(dataDir, running);
    expect((await stat(join(dataDir, 'stack.json'))).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['of a process that is gone', (text: string) => text.replace(/"pid":\d+/, '"pid":4194305')],
    ['of an earlier process with the same id', (text: string) => text.replace(/"birth":"[^"]*/, '"birth":"before')],
    ['that is cut off', (text: string) => text.slice(0, 20)],
  ])('is not what a file says %s', async (_, change) => {
    const dataDir = await makeTempDir();
    await announceRunning(dataDir, running);
    const file = join(dataDir, 'stack.json');
    await writeFile(file, change(await readFile(file, 'utf8')));
    await expect(find(dataDir)).rejects.toThrow(/has died.*bakehouse up/);
  });

  it('is the one of DATABASE_URL where that is set, with nothing of another that runs on the folder', async () => {
    const dataDir = await makeTempDir();
    await announceRunning(dataDir, running);
    const other = await find(dataDir, { DATABASE_URL: 'postgres://there/bakehouse', SWEEP_MS: '700' });
    expect(other).toMatchObject({ databaseUrl: 'postgres://there/bakehouse', redis: null, media: null });
    expect(other.pipeline.SWEEP_MS).toBe(700);
    expect(() => requireMedia(other)).toThrow(/MEDIA_URL and MEDIA_TOKEN/);
  });

  it('takes from a running one on the same database what the environment leaves out', async () => {
    const dataDir = await makeTempDir();
    await announceRunning(dataDir, running);
    const same = await find(dataDir, {
      DATABASE_URL: running.databaseUrl,
      MEDIA_URL: 'http://given:2,http://given:3',
      MEDIA_TOKEN: 'another-token-of-enough-characters',
    });
    expect(same).toEqual({
      ...running,
      media: { targets: ['http://given:2', 'http://given:3'], token: 'another-token-of-enough-characters' },
    });
  });
});
