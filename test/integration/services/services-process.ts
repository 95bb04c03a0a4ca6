import { startServices } from '../../../lib/services/start-services.ts';
import { silentLog } from '../../support/log.ts';

/** A run of its own for tests to kill: starts both servers in the folder given and says on stdout what it started. */
const [dataDir = ''] = process.argv.slice(2);
const services = await startServices({ dataDir, path: process.env.PATH, durable: false, log: silentLog });
const { databaseUrl, redisUrl, postgresPid, redisPid } = services;
process.stdout.write(`${JSON.stringify({ databaseUrl, redisUrl, postgresPid, redisPid })}\n`);
