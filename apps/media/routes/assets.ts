import { join } from 'node:path';
import { Hono } from 'hono';
import { z } from 'zod';
import { AppError } from '../../../lib/errors.ts';
import { fetchAsset } from '../../../lib/media/assets.ts';
import { assetKind, assetTier, validateRequest } from '../../../lib/media/contract.ts';
import { takeIn } from '../../../lib/media/intake.ts';
import { withJobDir } from '../../../lib/media/job-dir.ts';
import { validateAsset } from '../../../lib/media/validate.ts';
import type { MediaDeps } from '../deps.ts';
import { parse, parseBody } from '../parse.ts';

const uploadQuery = z.object({ tier: assetTier, kind: assetKind });

/** Files on their way in, and files looked at again. */
export const assetRoutes = (deps: MediaDeps) => {
  const { compose, checks, stopping, metrics } = deps;
  const { tools, storage, workDir } = compose;

  return new Hono()
    .put('/v1/assets', async (c) => {
      const { tier, kind } = parse(uploadQuery, c.req.query());
      const { body } = c.req.raw;
      if (!body) throw new AppError('invalid_request', { issues: [{ path: 'body', message: 'expects a file' }] });
      if (Number(c.req.header('content-length') ?? 0) > deps.maxUploadBytes) throw new AppError('source_too_large');
      const leave = checks.enter();
      try {
        const signal = AbortSignal.any([c.req.raw.signal, stopping]);
        const intake = { tools, storage, workDir, maxBytes: deps.maxUploadBytes };
        const answer = await takeIn(intake, body, { tier, kind }, signal);
        metrics.uploads.inc({ kind, outcome: answer.location === null ? 'refused' : 'stored' });
        return c.json(answer);
      } catch (error) {
        metrics.uploads.inc({ kind, outcome: 'failed' });
        throw error;
      } finally {
        leave();
      }
    })
    .post('/v1/exercises/validate', async (c) => {
      const { asset, kind } = await parseBody(c, validateRequest);
      const leave = checks.enter();
      try {
        const signal = AbortSignal.any([c.req.raw.signal, stopping]);
        const report = await withJobDir(workDir, async (jobDir) => {
          const file = join(jobDir, 'asset');
          await fetchAsset(compose.assets, asset, file, signal);
          return validateAsset(tools, file, kind, signal);
        });
        return c.json(report);
      } finally {
        leave();
      }
    });
};
