import { Hono } from 'hono';
import { listen } from '../../../apps/edge/listen.ts';
import { answerSchema } from './recorded.ts';

/** Node's server, Hono and one route that answers what it was given: the least that these bytes cost. */
const { path, status, headers, body } = answerSchema.parse(JSON.parse(process.env.ANSWER ?? ''));
const app = new Hono().get(path, () => new Response(body, { status, headers }));

const { url } = await listen(app, { host: '127.0.0.1', port: 0 });
process.stdout.write(`${url}\n`);
