-- What is kept of the end of a log, and it is kept on from now.
--
-- KEYS  1 the log
-- ARGV  1 the seq to begin with, if that is kept; else everything is returned   2 time to live in ms
-- Returns nothing, or: incarnation, seq of the first entry, then the entries.

local log = redis.call('HMGET', KEYS[1], 'i', 'f', 'n')
if not log[1] then return false end
local first, last, from = tonumber(log[2]), tonumber(log[3]), tonumber(ARGV[1])
if from > last then return false end
if from > first then first = from end
local reply = { log[1], tostring(first) }
while first <= last do
  local fields = {}
  for seq = first, math.min(last, first + 999) do fields[#fields + 1] = seq end
  for _, entry in ipairs(redis.call('HMGET', KEYS[1], unpack(fields))) do
    if not entry then return false end
    reply[#reply + 1] = entry
  end
  first = first + 1000
end
-- Not each time: it would make a write of every read, which a server that keeps a log waits for.
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) / 2 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return reply
