import { z } from '@hono/zod-openapi';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { csrf } from 'hono/csrf';
import { html } from 'hono/html';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { AppError } from '../../../lib/errors.ts';
import type { EdgeDeps } from '../deps.ts';
import { LOGIN_PATH, type OpsAuth } from '../ops-auth.ts';
import { invalidRequest, refuseBody } from '../problem.ts';
import type { EdgeEnv } from '../router.ts';
import { QUEUES_PATH } from './queues-board.ts';

const LOGOUT_PATH = '/ops/logout';

/** No script, no style, nothing from elsewhere. */
const CSP = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** More than the longest token that any identity provider makes. */
const MAX_BYTES = 32 * 1024;

const field = z
  .string()
  .max(16 * 1024)
  .default('');
const credentials = z.object({ username: field, password: field, token: field.transform((text) => text.trim()) });

/** Login to the ops pages for people with a browser: a form without a script, and a cookie that only the pages get. */
export function opsLogin({ log }: Pick<EdgeDeps, 'log'>, ops: OpsAuth) {
  const app = new Hono<EdgeEnv>();
  for (const path of [LOGIN_PATH, LOGOUT_PATH]) {
    // Another site's form may neither log somebody in nor out.
    app.use(path, csrf(), bodyLimit({ maxSize: MAX_BYTES, onError: refuseBody }), async (c, next) => {
      await next();
      c.header('Content-Security-Policy', CSP);
      c.header('Cache-Control', 'no-store');
    });
  }

  // The same for everybody: it tells nobody whether a cookie that they made up is one.
  app.get(LOGIN_PATH, (c) => c.html(page(ops)));

  app.post(LOGIN_PATH, async (c) => {
    const parsed = credentials.safeParse(await formOf(c));
    if (!parsed.success) throw invalidRequest(parsed.error, 'form');
    const { token, ...given } = parsed.data;
    try {
      await (token === '' ? ops.logInWithPassword(c, given) : ops.logInWithToken(c, token));
    } catch (error) {
      const isForPeople = c.req.header('Accept')?.includes('text/html');
      if (!(error instanceof AppError) || error.status >= 500 || !isForPeople) throw error;
      log.debug({ err: error, requestId: c.var.requestId }, 'nobody was logged in');
      const failure = error.code === 'forbidden' ? 'This token may not see the ops pages.' : 'That was not right.';
      return c.html(page(ops, failure), error.status as ContentfulStatusCode);
    }
    return c.redirect(QUEUES_PATH, 303);
  });

  app.post(LOGOUT_PATH, (c) => {
    ops.logOut(c);
    return c.redirect(LOGIN_PATH, 303);
  });
  return app;
}

/** The fields of the form. Throws `malformed_body` where it cannot be read as what it says it is. */
async function formOf(c: Context<EdgeEnv>) {
  // Read first: what ends the reading, such as the limit, is no fault of the form.
  await c.req.arrayBuffer();
  return c.req.parseBody().catch((error: unknown) => {
    throw new AppError('malformed_body', { detail: String(error), cause: error });
  });
}

function page({ hasPassword }: OpsAuth, failure?: string) {
  const byPassword = html`<fieldset>
      <legend>With the password</legend>
      <p><label>Name <input name="username" autocomplete="username"></label></p>
      <p><label>Password <input name="password" type="password" autocomplete="current-password"></label></p>
    </fieldset>`;
  const enter = html`<form method="post" action="${LOGIN_PATH}">
    ${hasPassword ? byPassword : ''}
    <fieldset>
      <legend>With a token of role ops or superadmin</legend>
      <p><label>Token <input name="token" type="password" autocomplete="off"></label></p>
    </fieldset>
    <button>Log in</button>
  </form>`;
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Bakehouse ops</title>
  </head>
  <body>
    <h1>Bakehouse ops</h1>
    ${failure ? html`<p role="alert">${failure}</p>` : ''}
    ${enter}
    <form method="post" action="${LOGOUT_PATH}"><button>Log out</button></form>
  </body>
</html>`;
}
