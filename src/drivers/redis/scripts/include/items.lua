-- One space of the store, for scripts whose first keys are
--   KEYS  1 items of the space   2 their keys, in order   3 index of the bucket
--
-- An item is packed in field `m<key>` of the first:
--   1 head: 'created updated expires version', '-' for no expiry; false once it is removed
--   2 value, false if it is a large one and lies in field `v<key>`, so that comparing does not read it
--   3 when it was last written or removed   4 the incarnation of the log that did it, or false
--   5 logs that wrote it, each as incarnation and newest seq, the last one at the end
--   6 names and tokens of its fields   7 when a removed one is forgotten
-- @include sortable

local spaceName = string.match(KEYS[1], '^[^}]*}:items:(.*)$')

local function load_item(key)
  local packed = redis.call('HGET', KEYS[1], 'm' .. key)
  if not packed then return nil end
  local isWhole, item = pcall(cmsgpack.unpack, packed)
  if not isWhole or type(item) ~= 'table' or #item ~= 7 then error('DAMAGED item') end
  return item
end

local function item_value(key, item)
  return item[2] or redis.call('HGET', KEYS[1], 'v' .. key)
end

-- False for an item that never expires or is not there.
local function expiry_of(item)
  local expires = item and item[1] and string.match(item[1], '^%S+ %S+ (%S+)')
  return expires and expires ~= '-' and expires
end

local function is_alive(item, now)
  if not item or not item[1] then return false end
  local expires = expiry_of(item)
  return not expires or now < tonumber(expires)
end

-- The row of the index by which an item is found when it expires ('x') or is to be forgotten ('r').
local function time_row(kind, time, key)
  return kind .. '\0' .. sortable(time) .. '\0' .. spaceName .. '\0' .. key
end

local function drop_time_row(key, item)
  local expires = expiry_of(item)
  if expires then
    redis.call('ZREM', KEYS[3], time_row('x', expires, key))
  elseif item and not item[1] then
    redis.call('ZREM', KEYS[3], time_row('r', item[7], key))
  end
end

-- `new` is { version, at, expires or '-', names and tokens }; `by` is { time, incarnation or false }.
local function put_item(key, old, new, value, now, by)
  local created = is_alive(old, now) and string.match(old[1], '^%S+') or new[2]
  local head = created .. ' ' .. new[2] .. ' ' .. new[3] .. ' ' .. new[1]
  local marks = old and old[5] or {}
  -- First, because only the first write of a script is refused when memory is full.
  if #value > 2048 then
    local packed = cmsgpack.pack({ head, false, by[1], by[2], marks, new[4], 0 })
    redis.call('HSET', KEYS[1], 'm' .. key, packed, 'v' .. key, value)
  else
    redis.call('HSET', KEYS[1], 'm' .. key, cmsgpack.pack({ head, value, by[1], by[2], marks, new[4], 0 }))
    if old and old[1] and not old[2] then redis.call('HDEL', KEYS[1], 'v' .. key) end
  end
  drop_time_row(key, old)
  if new[3] ~= '-' then redis.call('ZADD', KEYS[3], 0, time_row('x', new[3], key)) end
  if not old or not old[1] then
    redis.call('ZADD', KEYS[2], 0, key)
    redis.call('ZADD', KEYS[3], 0, 'i\0' .. spaceName)
  end
end

-- What a removed item remembers stays until `forget`: a late redo must not bring it back.
local function remove_item(key, old, forget, by)
  drop_time_row(key, old)
  if old and old[1] then
    if not old[2] then redis.call('HDEL', KEYS[1], 'v' .. key) end
    redis.call('ZREM', KEYS[2], key)
    if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('ZREM', KEYS[3], 'i\0' .. spaceName) end
  end
  redis.call('ZADD', KEYS[3], 0, time_row('r', forget, key))
  local packed = cmsgpack.pack({ false, false, by[1], by[2], old and old[5] or {}, {}, forget })
  redis.call('HSET', KEYS[1], 'm' .. key, packed)
end
