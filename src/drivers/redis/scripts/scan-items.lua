-- Items of one space in the order of their keys, as many as one call may look at without keeping others waiting.
--
-- KEYS  1 items of the space   2 their keys, in order   3 index of the bucket
-- ARGV  1 marker of the store   2 now   3 limit   4 lower and 5 upper bound of the keys, as ZRANGEBYLEX takes them
--       6 JSON of what narrows the scan: [[name, [token, …]], …]   7 '1' to return fields as well, else '0'
-- Returns 'lost', or { key to go on after, nil at the end; then key, head, value and fields of each item
-- in turn, the fields as JSON, or '' }.

-- @include items

local MAX_KEYS, MAX_BYTES, AT_ONCE = 2000, 4 * 1024 * 1024, 200

if not redis.call('ZSCORE', KEYS[3], ARGV[1]) then return 'lost' end
local now, left, from = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local wanted = {}
for i, condition in ipairs(cjson.decode(ARGV[6])) do
  local tokens = {}
  for _, token in ipairs(condition[2]) do tokens[token] = true end
  wanted[i] = { condition[1], tokens }
end

-- An item without a field of that name stays.
local function fits(fields)
  for _, condition in ipairs(wanted) do
    for i = 1, #fields, 2 do
      if fields[i] == condition[1] and not condition[2][fields[i + 1]] then return false end
    end
  end
  return true
end

local reply = { false }
local seen, bytes = 0, 0
while left > 0 do
  local keys = redis.call('ZRANGEBYLEX', KEYS[2], from, ARGV[5], 'LIMIT', 0, math.min(left, AT_ONCE))
  if #keys == 0 then
    reply[1] = false
    return reply
  end
  for _, key in ipairs(keys) do
    local item = load_item(key)
    if not item then error('DAMAGED item') end
    if is_alive(item, now) and fits(item[6]) then
      local value = item_value(key, item)
      reply[#reply + 1] = key
      reply[#reply + 1] = item[1]
      reply[#reply + 1] = value
      reply[#reply + 1] = ARGV[7] == '1' and cjson.encode(item[6]) or ''
      left = left - 1
      bytes = bytes + #key + (value and #value or 0)
    end
    seen = seen + 1
    reply[1] = key
    if seen >= MAX_KEYS or bytes >= MAX_BYTES then return reply end
  end
  from = '(' .. reply[1]
end
return reply
