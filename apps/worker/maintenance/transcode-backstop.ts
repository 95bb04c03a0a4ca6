import { overdueTranscodes, postponeTranscode } from '../../../lib/db/renders.ts';
import { settleTranscode, transcodeAgeMs } from '../../../lib/pipeline/transcode.ts';
import type { Duty } from './duty.ts';

const BATCH = 20;

/** Asks Bunny for the truth where a webhook should have come by now and did not. */
export const transcodeBackstop: Duty = {
  name: 'transcode-backstop',
  every: 1,
  run: async (deps) => {
    const { config, database, log } = deps;
    const overdue = await overdueTranscodes(database.db, BATCH);
    for (const render of overdue) {
      try {
        await settleTranscode(deps, render, 'backstop');
      } catch (err) {
        log.warn({ err, renderId: render.id }, 'transcode could not be asked for');
        const { id, videoGuid } = render;
        if (videoGuid !== null)
          await postponeTranscode(database.db, { id, videoGuid, nextMs: config.TRANSCODE_POLL_MS });
      }
      const age = transcodeAgeMs(render);
      if (age > config.TRANSCODE_ALARM_MS)
        log.error({ renderId: render.id, hours: age / 3_600_000 }, 'transcode takes very long');
    }
    return overdue.length;
  },
};
