-- Finds or founds the store of a prefix.
--
-- KEYS  1 store
-- ARGV  1 id for a new store   2 layout version   3 number of buckets for a new store
-- Returns { id, layout version, number of buckets, 'yes' once every bucket was marked, 'yes' once what is
-- due is indexed by program, priority and tenant }.

if redis.call('HSETNX', KEYS[1], 'id', ARGV[1]) == 1 then
  redis.call('HSET', KEYS[1], 'layout', ARGV[2], 'buckets', ARGV[3])
end
return redis.call('HMGET', KEYS[1], 'id', 'layout', 'buckets', 'marked', 'turns')
