-- The heads of logs, on a cluster of one bucket.
--
-- KEYS  1 index of the bucket   2.. logs
-- ARGV  1 marker of the store
-- Returns 'lost', or a head row or nil for each log.

-- @include head-row

local rows = {}
local missing = false
for i = 2, #KEYS do
  rows[i - 1] = head_row(KEYS[i])
  missing = missing or not rows[i - 1]
end
if missing and not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 'lost' end
return rows
