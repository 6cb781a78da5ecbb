-- Removes items of one space that have expired, and forgets those that were removed long enough ago. What changed since
-- the caller found them in the index is left alone.
--
-- KEYS  1 items of the space   2 their keys, in order   3 index of the bucket
-- ARGV  1 now   2 when what is removed now is forgotten   3.. keys
-- Returns the number of items removed.

-- @include items

local now = tonumber(ARGV[1])
local removed = 0
for i = 3, #ARGV do
  local key = ARGV[i]
  local item = load_item(key)
  if item and item[1] and not is_alive(item, now) then
    -- Expiry is nobody's doing: who wrote it last, and when, stays as it is.
    remove_item(key, item, tonumber(ARGV[2]), { item[3], item[4] })
    removed = removed + 1
  elseif item and not item[1] and item[7] <= now then
    drop_time_row(key, item)
    redis.call('HDEL', KEYS[1], 'm' .. key)
  end
end
return removed
