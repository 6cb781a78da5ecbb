-- Removes a blob that was not touched since.
--
-- KEYS  1 blob   2 list of the tenant's blobs in this bucket
-- ARGV  1 hash   2 touch it must still have
-- Returns 1 or 0.

if redis.call('HGET', KEYS[1], 't') ~= ARGV[2] then return 0 end
redis.call('UNLINK', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
