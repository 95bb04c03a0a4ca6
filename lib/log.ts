import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

/** Keys whose values are never written, wherever they stand in a logged object. */
const SECRET_KEYS = ['authorization', 'cookie', 'password', 'secret', 'token', 'accessKey', 'AccessKey', 'apiKey'];

/**
 * A JSON logger for one app; `level` as pino knows it ("silent" for none). It writes to stderr, because an app's
 * stdout carries its one ready line.
 */
export function createLogger(app: string, level: string, destination: DestinationStream = pino.destination(2)): Logger {
  const options = {
    level,
    base: { app },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: SECRET_KEYS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]), censor: '[redacted]' },
  };
  return pino(options, destination);
}
