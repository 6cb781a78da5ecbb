-- Ranges of the index of one bucket, or of several outside a cluster. All ranges of a bucket are from one moment: a log that
-- moves from one range to another between two reads would be seen twice or not at all.
--
-- KEYS  index of each bucket
-- ARGV  1 marker of the store   2 'asc', 'desc', or 'due': as 'asc', up to the server's time   3 limit for each range (-1: none)   4.. lower and upper bound of
--       each range, as ZRANGEBYLEX takes them
-- Returns 'lost', or for each bucket a list of members for each range.

-- @include sortable

if ARGV[2] == 'due' then
  local time = redis.call('TIME')
  local now = sortable(time[1] * 1000 + math.floor(time[2] / 1000))
  for i = 5, #ARGV, 2 do ARGV[i] = ARGV[i] .. now .. '\1' end
end

local buckets = {}
for at, key in ipairs(KEYS) do
  if not redis.call('ZSCORE', key, ARGV[1]) then return 'lost' end
  local ranges = {}
  for i = 4, #ARGV, 2 do
    if ARGV[2] ~= 'desc' then
      ranges[#ranges + 1] = redis.call('ZRANGEBYLEX', key, ARGV[i], ARGV[i + 1], 'LIMIT', 0, ARGV[3])
    else
      ranges[#ranges + 1] = redis.call('ZREVRANGEBYLEX', key, ARGV[i + 1], ARGV[i], 'LIMIT', 0, ARGV[3])
    end
  end
  buckets[at] = ranges
end
return buckets
