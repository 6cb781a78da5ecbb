-- Gives a blob a later touch.
--
-- KEYS  1 blob   2 clock of the bucket's blobs
-- Returns 1, or 0 if there is no such blob.

-- @include next-touch

if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 't', next_touch(KEYS[2]))
return 1
