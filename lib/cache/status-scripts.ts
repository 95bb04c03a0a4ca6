import type { Result } from 'ioredis';

/**
 * The status cache's Lua scripts. Of each programme there are a value and a count of its changes; a value is stored only
 * where nothing has changed since it was asked for, so that no reader puts back what a transition has just taken away.
 */

/** KEYS value, changes, last. Answers the value or false, the count of changes, and the last value where there is none now. */
const READ = `
local value = redis.call('GET', KEYS[1])
return {value, redis.call('GET', KEYS[2]) or '0', not value and redis.call('GET', KEYS[3])}
`;

/** KEYS value, changes, last. ARGV the count that was read, the value, its ms, the ms it is the last for. */
const STORE = `
if (redis.call('GET', KEYS[2]) or '0') == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[4])
end
`;

/**
 * KEYS value and changes of each programme in turn. ARGV channel, ms that the counts are kept, the programmes' ids. A
 * count that is gone reads as 0 again: by then no reader of before is still at work.
 */
const CHANGE = `
for i = 3, #ARGV do
  local value, changes = KEYS[2 * (i - 2) - 1], KEYS[2 * (i - 2)]
  redis.call('DEL', value)
  redis.call('INCR', changes)
  redis.call('PEXPIRE', changes, ARGV[2])
  redis.call('PUBLISH', ARGV[1], ARGV[i])
end
`;

/** As commands of a connection, which then sends a script's text only to a Redis that does not know it yet. */
export const STATUS_SCRIPTS = {
  readStatus: { lua: READ, numberOfKeys: 3 },
  storeStatus: { lua: STORE, numberOfKeys: 3 },
  changeStatuses: { lua: CHANGE },
};

type Argument = string | number;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    readStatus(...given: Argument[]): Result<[value: string | null, changes: string, last: string | null], Context>;
    storeStatus(...given: Argument[]): Result<null, Context>;
    changeStatuses(...given: Argument[]): Result<null, Context>;
  }
}
