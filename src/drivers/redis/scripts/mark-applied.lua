-- Records up to which entry what a log carries is applied to the store. Never moves back.
--
-- KEYS  1 log   2 index of the bucket
-- ARGV  1 incarnation   2 seq, or '' to ask only whether the log is there   3 marker of the store
-- Returns 1, 0 if the log is gone or has another incarnation, or 'lost'.

local log = redis.call('HMGET', KEYS[1], 'h', 'a')
if not log[1] then
  if redis.call('ZSCORE', KEYS[2], ARGV[3]) then return 0 end
  return 'lost'
end
if string.match(log[1], '^[^\n]*\n%d+ %S+ %d+ ([^\n]*)\n') ~= ARGV[1] then return 0 end
local seq = tonumber(ARGV[2])
if seq and (not log[2] or tonumber(log[2]) < seq) then redis.call('HSET', KEYS[1], 'a', ARGV[2]) end
return 1
