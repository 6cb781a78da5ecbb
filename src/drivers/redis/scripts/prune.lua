-- Removes every entry before a keyframe and moves the base there. With a keyframe to stand in for the entry there, which
-- need be none, that takes its place.
--
-- KEYS  1 log   2 index of the bucket
-- ARGV  1 incarnation   2 seq of the keyframe   3 marker of the store
--       4 hash of the entry, only with a stand-in; then its fields: `m<seq>`, and `d<seq>` where it has one
-- Returns the number of entries removed, 'conflict' or 'lost'.

local log = redis.call('HMGET', KEYS[1], 'h', 'b', 'm' .. ARGV[2])
if not log[1] then
  if redis.call('ZSCORE', KEYS[2], ARGV[3]) then return 'conflict' end
  return 'lost'
end
if string.match(log[1], '^[^\n]*\n%d+ %S+ %d+ ([^\n]*)\n') ~= ARGV[1] then return 'conflict' end
local base = tonumber(string.match(log[2], '^%d+'))
local seq = tonumber(ARGV[2])
if seq <= base then return 0 end
if not log[3] then return 'conflict' end
local keyframe, hash = string.match(log[3], '^(%d+) (%S+) ')
if ARGV[4] then
  if hash ~= ARGV[4] then return 'conflict' end
  redis.call('HDEL', KEYS[1], 'd' .. ARGV[2])
  redis.call('HSET', KEYS[1], unpack(ARGV, 5))
elseif keyframe ~= ARGV[2] then
  return 'conflict'
end

local first = base
while first < seq do
  local fields = {}
  local stop = math.min(seq - 1, first + 1999)
  for i = first, stop do
    fields[#fields + 1] = 'm' .. i
    fields[#fields + 1] = 'd' .. i
  end
  redis.call('HDEL', KEYS[1], unpack(fields))
  first = stop + 1
end
redis.call('HSET', KEYS[1], 'b', ARGV[2] .. ' ' .. hash)
return seq - base
