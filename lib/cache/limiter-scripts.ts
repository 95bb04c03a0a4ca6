import type { Result } from 'ioredis';

/**
 * The limiter's Lua scripts. Keys: the permits, a sorted set of `<uuid> <target>` by expiry in milliseconds; what is
 * announced, a hash of `<target> <instance>` to `<slots> <expiry>`; the processes that wait for a permit, a sorted set by
 * the time until which they count. All by the clock of Redis. To release is a ZREM.
 */

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/** Needs `now` and `announced`, the key; leaves `slots` by target and their sum `total`. */
const SLOTS = `
local slots, total = {}, 0
local fields = redis.call('HGETALL', announced)
for i = 1, #fields, 2 do
  local target = string.match(fields[i], '^(%S+) ')
  local count, expiry = string.match(fields[i + 1], '^(%d+) (%d+)$')
  if tonumber(expiry) <= now then
    redis.call('HDEL', announced, fields[i])
  else
    slots[target] = (slots[target] or 0) + tonumber(count)
    total = total + tonumber(count)
  end
end
`;

/**
 * KEYS permits, announced, waiting. ARGV permit's ms, total that replaces the announced one or -1, id of the new permit,
 * who asks, ms that whoever gets none counts as waiting, number of targets, the targets, members that the caller holds
 * already (added again where they are missing). Answers kind, target, capacity.
 *
 * Who has not waited yet leaves what is free to those who do, once: a busy worker hears first of the permit that it gives
 * back, and would take it again and again.
 */
const ACQUIRE = `${NOW}
local announced = KEYS[2]
${SLOTS}
local expiry, limit, id, asker, targets = now + ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[6])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
for i = 7 + targets, #ARGV do redis.call('ZADD', KEYS[1], 'NX', expiry, ARGV[i]) end
local members = redis.call('ZRANGE', KEYS[1], 0, -1)
local used = {}
for _, member in ipairs(members) do
  local target = string.sub(member, 38)
  used[target] = (used[target] or 0) + 1
end
local best, most
local room = 0
for i = 7, 6 + targets do
  local target = ARGV[i]
  if (slots[target] or 0) > 0 then
    local free = slots[target] - (used[target] or 0)
    room = room + math.max(0, free)
    if most == nil or free > most then best, most = target, free end
  end
end
local capacity = total
if limit >= 0 then capacity = limit end
if best == nil then return {'unannounced', '', capacity} end
if limit >= 0 then room = limit - #members end
local waited = redis.call('ZSCORE', KEYS[3], asker)
if room <= 0 or not waited and room <= redis.call('ZCARD', KEYS[3]) then
  redis.call('ZADD', KEYS[3], now + ARGV[5], asker)
  return {'full', '', capacity}
end
redis.call('ZREM', KEYS[3], asker)
redis.call('ZADD', KEYS[1], expiry, id .. ' ' .. best)
return {'granted', best, capacity}
`;

/** KEYS permits. ARGV permit's ms, members. Adds those that are missing. */
const RENEW = `${NOW}
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i]) end
`;

/** KEYS announced. ARGV field, slots, announcement's ms. Answers the sum of all slots. */
const ANNOUNCE = `${NOW}
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. (now + ARGV[3]))
local announced = KEYS[1]
${SLOTS}
return total
`;

/** KEYS permits. ARGV ms, member. Lets a permit that nobody holds any more end then, and no sooner. */
const OUTLIVE = `${NOW}
redis.call('ZADD', KEYS[1], 'XX', now + ARGV[1], ARGV[2])
`;

/** As commands of a connection, which then sends a script's text only to a Redis that does not know it yet. */
export const LIMITER_SCRIPTS = {
  acquirePermit: { lua: ACQUIRE, numberOfKeys: 3 },
  renewPermits: { lua: RENEW, numberOfKeys: 1 },
  announceSlots: { lua: ANNOUNCE, numberOfKeys: 1 },
  outlivePermit: { lua: OUTLIVE, numberOfKeys: 1 },
};

/** KEYS announced. Answers the sum of all slots. */
export const COUNT_SLOTS = {
  countSlots: { lua: `${NOW}\nlocal announced = KEYS[1]\n${SLOTS}\nreturn total`, numberOfKeys: 1 },
};

/** Where the workers announce what media can take. */
export const announcedKey = (prefix: string) => `${prefix}:media:capacity`;

type Argument = string | number;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    acquirePermit(...given: Argument[]): Result<[kind: string, target: string, capacity: number], Context>;
    renewPermits(...given: Argument[]): Result<null, Context>;
    announceSlots(...given: Argument[]): Result<number, Context>;
    countSlots(announced: string): Result<number, Context>;
    outlivePermit(...given: Argument[]): Result<null, Context>;
  }
}
