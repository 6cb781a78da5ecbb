-- Reserves logs of a bucket that were found to be due, those that nobody has taken since.
--
-- KEYS  1 index of the bucket
-- ARGV  1 marker of the store   2 milliseconds to reserve for   3.. name of each log, and the seq it ended with
-- Returns 'lost', or 1 or 0 for each log.
--
-- The keys of the logs are in the slot of the index.

local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 'lost' end
local start = string.match(KEYS[1], '^(.*)index$') .. 'log:'
local reply = {}
for i = 3, #ARGV, 2 do
  local key = start .. ARGV[i]
  local fields = redis.call('HMGET', key, 'h', 'k', 'o')
  local ends, seq = 0, fields[1] and string.match(fields[1], '^[^\n]*\n(%d+) ')
  if fields[1] and fields[3] then ends = tonumber(string.match(fields[1], '^.*\n(.*)$')) end
  if fields[1] and fields[2] then
    local at, till = string.match(fields[2], '^(%d+) (.*)$')
    if at == seq then ends = math.max(ends, tonumber(till)) end
  end
  if seq == ARGV[i + 1] and ends <= now then
    redis.call('HSET', key, 'k', seq .. ' ' .. string.format('%.3f', now + ARGV[2]))
    reply[#reply + 1] = 1
  else
    reply[#reply + 1] = 0
  end
end
return reply
