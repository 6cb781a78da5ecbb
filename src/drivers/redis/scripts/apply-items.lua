-- Applies writes that entries of a log carry to items of one space, perhaps again, perhaps late.
--
-- KEYS  1 items of the space   2 their keys, in order   3 index of the bucket
-- ARGV  1 marker of the store   2 incarnation of the log   3 '1' for a redo, else '0'
--       4 milliseconds for which a removed item is remembered
--       5 JSON: for each write [key, seq, time of the entry, version, at, expires or '-', [name, token, …]], of which a
--         removal has only the first three
--       6.. value of each write that is no removal
-- Returns 1 or 'lost'.

-- @include items

if not redis.call('ZSCORE', KEYS[3], ARGV[1]) then return 'lost' end
local incarnation, redo = ARGV[2], ARGV[3] == '1'
local time = redis.call('TIME')
local serverNow = time[1] * 1000 + math.floor(time[2] / 1000)

-- Where the log stands among those that an item remembers, and its newest seq.
local function find_mark(marks)
  for i = 1, #marks, 2 do
    if marks[i] == incarnation then return i, marks[i + 1] end
  end
end

local argument = 6
for _, write in ipairs(cjson.decode(ARGV[5])) do
  local key, seq, at = write[1], write[2], tonumber(write[3])
  local old = load_item(key) or { false, false, at, incarnation, {}, {}, 0 }
  local place, newest = find_mark(old[5])
  local isApplied = newest and newest >= seq
  local isOvertaken = redo and old[4] ~= incarnation and old[3] > at
  if not isApplied and not isOvertaken then
    if place then
      table.remove(old[5], place)
      table.remove(old[5], place)
    elseif #old[5] >= 32 then
      table.remove(old[5], 1)
      table.remove(old[5], 1)
    end
    table.insert(old[5], incarnation)
    table.insert(old[5], seq)
    if write[4] then
      put_item(key, old, { write[4], write[5], write[6], write[7] }, ARGV[argument], at, { at, incarnation })
    else
      -- From when it is applied: an entry may be older than a day by then.
      remove_item(key, old, math.max(at, serverNow) + tonumber(ARGV[4]), { at, incarnation })
    end
  end
  if write[4] then argument = argument + 1 end
end
return 1
