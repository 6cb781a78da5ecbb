-- Up to `limit` entries from `from` on.
--
-- KEYS  1 log   2 index of the bucket
-- ARGV  1 from   2 limit   3 marker of the store
-- Returns nil if there is no such log, 'lost', or { seq of the first entry, then the two fields of each in turn }.

-- @include get-entries

local log = redis.call('HMGET', KEYS[1], 'h', 'b')
if not log[1] then
  if redis.call('ZSCORE', KEYS[2], ARGV[3]) then return false end
  return 'lost'
end
local newest = tonumber(string.match(log[1], '\n(%d+)'))
local base = tonumber(string.match(log[2], '^%d+'))
local first = math.max(tonumber(ARGV[1]), base)
local last = math.min(newest, first + tonumber(ARGV[2]) - 1)
return get_entries({ tostring(first) }, KEYS[1], first, last)
