-- Leaves a tombstone for a thread that has no log.
--
-- KEYS  1 thread   2 index of the bucket
-- ARGV  1 marker of the store   2 tombstone
-- Returns 'lost', 1, or 0 if the thread has a log.

if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 'lost' end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 1) == '+' then return 0 end
end
redis.call('HSET', KEYS[1], 'tombstone', ARGV[2])
return 1
