-- Gives the logs of a bucket that a version without rows of labels wrote last the rows of their labels, some logs at a time.
--
-- KEYS  1 index of the bucket
-- ARGV  1 marker of the store   2 row of the index behind which to go on, or ''   3 how many logs to look at
-- Returns 'lost', the row behind which the next call goes on, or '' if all logs were looked at.
--
-- The logs are found by their rows in the index, so their keys can't be declared. They are in the slot of the index.

-- @include index-members
-- @include label-members
-- @include replace-labels

if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 'lost' end
local start = string.match(KEYS[1], '^(.*)index$') .. 'log:'
local from = ARGV[2] == '' and '[c\0' or '(' .. ARGV[2]
local rows = redis.call('ZRANGEBYLEX', KEYS[1], from, '(c\1', 'LIMIT', 0, ARGV[3])
for _, member in ipairs(rows) do
  local name = string.sub(member, 20)
  local key = start .. name
  local head = redis.call('HGET', key, 'h')
  local row = head and string.match(head, '^[^\n]*')
  if row and not has_label_rows(row) then
    local labels = redis.call('HGET', key, 'g')
    local created, updated, wake, expires, rest = string.match(row, '^(%S+) (%S+) (%S+) (%S+) (.*)$')
    -- A log whose labels can't be read stays without, and queries by labels read all heads.
    if label_list(created, labels) then
      local expiry = expires ~= '-' and expires
      expires = expires == '-' and '1e300' or string.format('%.17g', expires - 1e17)
      local marked = table.concat({ created, updated, wake, expires, rest }, ' ')
      -- Of the other rows, only that of the expiry is a different one.
      local old = expiry and { 'e\0' .. sortable(expiry) .. '\0' .. name } or {}
      replace_members(KEYS[1], old, { 'e\0' .. sortable(expires) .. '\0' .. name })
      replace_labels(KEYS[1], key, name, created, labels)
      redis.call('HSET', key, 'h', marked .. string.sub(head, #row + 1))
    end
  end
end
return #rows == tonumber(ARGV[3]) and rows[#rows] or ''
