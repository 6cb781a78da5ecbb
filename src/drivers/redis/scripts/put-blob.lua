-- Stores a blob; one that exists only gets a later touch.
--
-- KEYS  1 blob   2 list of the tenant's blobs in this bucket   3 clock of the bucket's blobs
-- ARGV  1 hash   2 bytes
-- Returns 1.

-- @include next-touch

local touch = next_touch(KEYS[3])
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], 't', touch)
else
  redis.call('HSET', KEYS[1], 't', touch, 'n', #ARGV[2], 'd', ARGV[2])
  redis.call('ZADD', KEYS[2], 0, ARGV[1])
end
return 1
