-- Compares and writes items of one space. Each write is all or nothing; one that conflicts does not hinder the others.
--
-- KEYS  1 items of the space   2 their keys, in order   3 index of the bucket
-- ARGV  1 marker of the store   2 now   3 when what is removed now is forgotten
--       4 JSON: for each write [key, expect, version, at, expires or '-', [name, token, …]], of which a removal has only
--         the first two; `expect` is true for whatever is there, false for nothing, or a version
--       5.. value of each write that is no removal
-- Returns 'lost', or for each write 1, or { version that is there, or nil }.

-- @include items

if not redis.call('ZSCORE', KEYS[3], ARGV[1]) then return 'lost' end
local now = tonumber(ARGV[2])
local results = {}
local argument = 5
for i, write in ipairs(cjson.decode(ARGV[4])) do
  local key, expect = write[1], write[2]
  local old = load_item(key)
  local version = is_alive(old, now) and string.match(old[1], '^%S+ %S+ %S+ (.*)$')
  if expect ~= true and expect ~= version then
    results[i] = { version }
  elseif write[3] then
    local new = { write[3], write[4], write[5], write[6] }
    put_item(key, old, new, ARGV[argument], now, { tonumber(write[4]), false })
    results[i] = 1
  else
    remove_item(key, old, tonumber(ARGV[3]), { now, false })
    results[i] = 1
  end
  if write[3] then argument = argument + 1 end
end
return results
