-- How many rows are in ranges of the index of one bucket, or of several outside a cluster.
--
-- KEYS  index of each bucket
-- ARGV  1 marker of the store   2.. lower and upper bound of each range, as ZLEXCOUNT takes them
-- Returns 'lost', or for each bucket a number for each range.

local buckets = {}
for at, key in ipairs(KEYS) do
  if not redis.call('ZSCORE', key, ARGV[1]) then return 'lost' end
  local counts = {}
  for i = 2, #ARGV, 2 do counts[#counts + 1] = redis.call('ZLEXCOUNT', key, ARGV[i], ARGV[i + 1]) end
  buckets[at] = counts
end
return buckets
