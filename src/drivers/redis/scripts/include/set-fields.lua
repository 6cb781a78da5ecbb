-- HSET of the pairs that `list` holds from `first` on. Lua passes at most a few thousand arguments to one call.
local function set_fields(key, list, first)
  while #list - first >= 4000 do
    redis.call('HSET', key, unpack(list, first, first + 3999))
    first = first + 4000
  end
  if first <= #list then redis.call('HSET', key, unpack(list, first)) end
end
