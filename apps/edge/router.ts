import { OpenAPIHono } from '@hono/zod-openapi';
import type { Who } from '../../lib/auth/tokens.ts';
import type { Db } from '../../lib/db/client.ts';
import { invalidRequest } from './problem.ts';

export interface EdgeEnv {
  Variables: {
    requestId: string;
    /** Set below /v1, where nobody passes without a token. */
    who: Who;
    /** Set below /v1: where keys of requests and what was answered to them are kept. */
    db: Db;
    /** What is kept of an answer for repetitions by `Idempotency-Key`, where a secret in it is to be shown once only. */
    keptBody?: string;
  };
}

/** A router whose routes are validated and documented by the same schemas; what does not fit is answered as a problem. */
export const createRouter = () =>
  new OpenAPIHono<EdgeEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalidRequest(result.error, result.target);
    },
  });
