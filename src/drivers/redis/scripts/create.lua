-- Creates a log with its first entries.
--
-- KEYS  1 log   2 index of the bucket   3 thread   4 (only with a requirement) log that must exist
-- ARGV  1 branch                                  2 index row
--       3 marker of the store                     4 owner of the lease
--       5 milliseconds of the lease, or '' for none               6 incarnation that KEYS[4] must have
--       7 head, up to the end of the lease        8.. field and value pairs of the log's hash, the second of them `g`
-- Returns 1, 'lost', or { 'conflict', head row }.

-- @include head-row
-- @include index-members
-- @include label-members
-- @include set-fields

if not redis.call('ZSCORE', KEYS[2], ARGV[3]) then return 'lost' end
if redis.call('EXISTS', KEYS[1]) == 1 then return { 'conflict', head_row(KEYS[1]) } end
if KEYS[4] then
  local head = redis.call('HGET', KEYS[4], 'h')
  if not head or string.match(head, '^[^\n]*\n%d+ %S+ %d+ ([^\n]*)\n') ~= ARGV[6] then return { 'conflict', false } end
end

local leaseEnd = '0'
if ARGV[5] ~= '' then
  local time = redis.call('TIME')
  leaseEnd = string.format('%.3f', time[1] * 1000 + time[2] / 1000 + ARGV[5])
  redis.call('HSET', KEYS[1], 'o', ARGV[4])
end
local name = log_name(KEYS[1])
local members = index_members(ARGV[2], name)
local list = label_list(string.match(ARGV[2], '^%S+'), ARGV[11])
local labeled = label_members(list, name)
for _, member in ipairs(labeled) do members[#members + 1] = member end
redis.call('ZADD', KEYS[2], unpack(with_scores(members)))
if #labeled > 0 then redis.call('HSET', KEYS[1], 'l', list) end
redis.call('HSET', KEYS[3], '+' .. ARGV[1], '')
redis.call('HDEL', KEYS[3], 'tombstone')
redis.call('HSET', KEYS[1], 'h', ARGV[7] .. leaseEnd)
set_fields(KEYS[1], ARGV, 8)
return 1
