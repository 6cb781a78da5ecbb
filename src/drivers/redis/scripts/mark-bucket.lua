-- Checks or places the marker by which every later operation sees that the bucket still holds what the store put there.
--
-- KEYS  1 index of the bucket
-- ARGV  1 marker of the store   2 'place' while the store is being founded, 'accept' to go on after a loss, else 'check'
-- Returns 'ok', 'missing', or 'other' when the bucket belongs to a store whose own record is gone.

if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 'ok' end
local others = redis.call('ZRANGEBYLEX', KEYS[1], '[!', '("')
if #others > 0 and ARGV[2] ~= 'accept' then return 'other' end
if ARGV[2] == 'check' then return 'missing' end
if #others > 0 then redis.call('ZREM', KEYS[1], unpack(others)) end
redis.call('ZADD', KEYS[1], 0, ARGV[1])
return 'ok'
