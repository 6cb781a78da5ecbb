-- The head of a log as the client reads it: server time in milliseconds, head, base, owner, labels, the seq up to which
-- writes to the store are applied, and who wrote in which generation. False if there is no such log.
local function head_row(key)
  local row = redis.call('HMGET', key, 'h', 'b', 'o', 'g', 'a', 'n')
  if not row[1] then return false end
  local time = redis.call('TIME')
  return { string.format('%.3f', time[1] * 1000 + time[2] / 1000), row[1], row[2], row[3], row[4], row[5], row[6] }
end
