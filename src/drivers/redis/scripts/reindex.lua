-- Replaces the index row and the labels of a log that still ends where the caller saw it.
--
-- KEYS  1 log   2 index of the bucket
-- ARGV  1 core the log must have   2 index row   3 marker of the store   4 head, up to the end of the lease   5 labels
-- Returns 1, 0 or 'lost'.

-- @include index-members
-- @include label-members
-- @include replace-labels

local head = redis.call('HGET', KEYS[1], 'h')
local row, core
if head then row, core = string.match(head, '^([^\n]*)\n([^\n]*)\n') end
if core ~= ARGV[1] then
  if not head and not redis.call('ZSCORE', KEYS[2], ARGV[3]) then return 'lost' end
  return 0
end
local name = log_name(KEYS[1])
replace_members(KEYS[2], index_members(row, name), index_members(ARGV[2], name))
replace_labels(KEYS[2], KEYS[1], name, string.match(ARGV[2], '^%S+'), ARGV[5])
redis.call('HSET', KEYS[1], 'h', ARGV[4] .. string.match(head, '^.*\n(.*)$'), 'g', ARGV[5])
return 1
