-- Microseconds since 1970, later than every touch this bucket has seen: a blob that was removed and put again must
-- differ from the one a slow collector still has on its list.
local function next_touch(clock)
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local last = tonumber(redis.call('GET', clock) or 0)
  if now <= last then now = last + 1 end
  local touch = string.format('%.0f', now)
  redis.call('SET', clock, touch)
  return touch
end
