-- Ends the lease some milliseconds from now if the incarnation and the epoch are still the caller's.
--
-- KEYS  1 log   2 index of the bucket
-- ARGV  1 epoch   2 milliseconds   3 marker of the store   4 incarnation
-- Returns 1, 0 or 'lost'.

local log = redis.call('HMGET', KEYS[1], 'h', 'o')
if not log[1] then
  if redis.call('ZSCORE', KEYS[2], ARGV[3]) then return 0 end
  return 'lost'
end
local epoch, incarnation = string.match(log[1], '^[^\n]*\n%d+ %S+ (%d+) ([^\n]*)\n')
if not log[2] or epoch ~= ARGV[1] or incarnation ~= ARGV[4] then return 0 end
-- Removes nothing, and is never refused: a lease takes no more memory than it did, and work that is under way must not be
-- taken for dead because memory is full.
redis.call('HDEL', KEYS[1], '')
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
redis.call('HSET', KEYS[1], 'h', string.match(log[1], '^.*\n') .. string.format('%.3f', now + ARGV[2]))
return 1
