-- The items of one space by their keys, without those that have expired.
--
-- KEYS  1 items of the space   2 their keys, in order   3 index of the bucket
-- ARGV  1 marker of the store   2 now   3 time to which an expiry is moved if that is later, or ''   4.. keys
-- Returns 'lost', or head and value of each key in turn, both nil for one that is not there.

-- @include items

if not redis.call('ZSCORE', KEYS[3], ARGV[1]) then return 'lost' end
local now, extendTo = tonumber(ARGV[2]), tonumber(ARGV[3])
local reply = {}
for i = 4, #ARGV do
  local key = ARGV[i]
  local item = load_item(key)
  if is_alive(item, now) then
    local expires = expiry_of(item)
    if extendTo and expires and extendTo > tonumber(expires) then
      local created, updated, version = string.match(item[1], '^(%S+) (%S+) %S+ (.*)$')
      drop_time_row(key, item)
      item[1] = created .. ' ' .. updated .. ' ' .. ARGV[3] .. ' ' .. version
      redis.call('ZADD', KEYS[3], 0, time_row('x', ARGV[3], key))
      redis.call('HSET', KEYS[1], 'm' .. key, cmsgpack.pack(item))
    end
    reply[#reply + 1] = item[1]
    reply[#reply + 1] = item_value(key, item)
  else
    reply[#reply + 1] = false
    reply[#reply + 1] = false
  end
end
return reply
