import { z } from 'zod';
import { commaList, flag } from './env.ts';

const what = 'keys of at least 32 characters that the secrets of webhook endpoints are derived from';
const key = z.string().min(32, `expects ${what}`);

/** What edge and worker must agree on, so that a clinic is shown the secret that its webhooks are signed with. */
export const outboundEnv = {
  WEBHOOK_SIGNING_KEY: commaList(what)
    .pipe(z.tuple([key], key))
    .optional()
    .describe(
      `a comma-separated list: ${what}; the first makes new secrets, all of them sign; without it there are none`,
    ),
  WEBHOOK_ALLOW_PRIVATE: flag(false, 'webhooks may go to private addresses and over http'),
};

/** For development only: in production it would open the inner network to whoever may enter a URL. */
export const PRIVATE_ONLY_IN_DEVELOPMENT = {
  path: ['WEBHOOK_ALLOW_PRIVATE'],
  error: 'is for development: in production webhooks could reach the inner network',
  // Checked even where other variables are wrong, so that one look shows all there is to mend.
  when: () => true,
};

export const keepsPrivatePrivate = (env: { NODE_ENV: string; WEBHOOK_ALLOW_PRIVATE: boolean }): boolean =>
  env.NODE_ENV !== 'production' || !env.WEBHOOK_ALLOW_PRIVATE;
