import { createLogger } from '../../lib/log.ts';

export const silentLog = createLogger('test', 'silent');
