-- The newest keyframe at or before `upTo` and every entry after it up to there, with the head.
--
-- KEYS  1 log   2 index of the bucket
-- ARGV  1 upTo, or '' for the head   2 marker of the store   3 the most entries to return, or '' for all
-- Returns nil if there is no such log, 'lost', or
-- { head row, seq of the first entry, then the two fields of each entry in turn }, or, where these are more than asked for,
-- { head row, seq of the first entry, their number }.

-- @include head-row
-- @include get-entries

local head = head_row(KEYS[1])
if not head then
  if redis.call('ZSCORE', KEYS[2], ARGV[2]) then return false end
  return 'lost'
end
local newest = tonumber(string.match(head[2], '\n(%d+)'))
local base = tonumber(string.match(head[3], '^%d+'))
local upTo = tonumber(ARGV[1]) or newest
if upTo < base or upTo > newest then return { head, '0' } end
local meta = redis.call('HGET', KEYS[1], 'm' .. upTo)
-- A missing field is a damaged log; the client reports it, because it sees that entries are missing.
local keyframe = meta and tonumber(string.match(meta, '^%d+')) or upTo
-- A keyframe that was pruned has another in its place, at the base.
if keyframe < base then keyframe = base end
local count = upTo - keyframe + 1
if count > (tonumber(ARGV[3]) or count) then return { head, tostring(keyframe), count } end
return get_entries({ head, tostring(keyframe) }, KEYS[1], keyframe, upTo)
