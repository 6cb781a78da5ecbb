-- Up to `limit` headers before `before`, newest first. Bodies have fields of their own, which are not touched; only small
-- ones lie behind their header, and are cut off here.
--
-- KEYS  1 log   2 index of the bucket
-- ARGV  1 before, or '' to begin with the head   2 limit   3 marker of the store
-- Returns nil if there is no such log, 'lost', or { seq of the newest, meta field of each without a body }.

local log = redis.call('HMGET', KEYS[1], 'h', 'b')
if not log[1] then
  if redis.call('ZSCORE', KEYS[2], ARGV[3]) then return false end
  return 'lost'
end
local newest = tonumber(string.match(log[1], '\n(%d+)'))
local base = tonumber(string.match(log[2], '^%d+'))
local before = tonumber(ARGV[1]) or newest + 1
local seq = math.min(before - 1, newest)
local last = math.max(base, seq - tonumber(ARGV[2]) + 1)
local reply = { tostring(seq) }
while seq >= last do
  local fields = {}
  local stop = math.max(last, seq - 3999)
  for i = seq, stop, -1 do fields[#fields + 1] = 'm' .. i end
  local values = redis.call('HMGET', KEYS[1], unpack(fields))
  for i = 1, #values do
    local meta = values[i]
    local length, start
    if meta then length, start = string.match(meta, '^%d+ %S+ %d+ (%d+) ()') end
    reply[#reply + 1] = length and string.sub(meta, 1, start + length - 1)
  end
  seq = stop - 1
end
return reply
