-- Removes what is kept of a log, and keeps that life of it from coming back; or takes that back.
--
-- KEYS  1 the log
-- ARGV  1 incarnation to keep out; empty: none, and what is kept out stays so   2 time to live in ms
--       3 'unbar': only lets that incarnation in again
-- Returns 1.

local barred = redis.call('HGET', KEYS[1], 'x')
if ARGV[3] == 'unbar' then
  if barred == ARGV[1] then redis.call('HDEL', KEYS[1], 'x') end
  return 1
end
if ARGV[1] ~= '' then barred = ARGV[1] end
redis.call('DEL', KEYS[1])
if barred then
  redis.call('HSET', KEYS[1], 'x', barred)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
