-- Keeps entries at the end of a log, if they follow what is kept or stand alone, and are newer. Entries that come before the
-- ones that they follow, because another process was faster to say so, are laid aside until those come. What can't be joined
-- is let go of: the log has moved on from it.
--
-- KEYS  1 the log
-- ARGV  1 incarnation   2 seq and 3 hash of the entry that these follow; -1 if they stand alone
--       4 seq of the first   5 seq and 6 hash of the last   7 their bytes
--       8 the most bytes and 9 the most entries to keep   10 time to live in ms   11 … the entries
-- Returns 'kept', 'early' (laid aside), 'older', 'barred' or 'dropped'.
--
-- Fields of a log: i incarnation; f seq of the first entry, n seq and h hash of the last; z bytes; x the incarnation that is
-- kept out; q, r seq of the first and last entry laid aside, s hash of the one that they follow, t hash of their last.

local log = redis.call('HMGET', KEYS[1], 'i', 'f', 'n', 'h', 'z', 'x', 'q', 'r', 's', 't')
if log[6] == ARGV[1] then return 'barred' end
local first, last, hash, bytes = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])

local function keep_entries()
  local seq = tonumber(ARGV[4])
  for i = 11, #ARGV do
    redis.call('HSET', KEYS[1], seq, ARGV[i])
    seq = seq + 1
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[10])
end

if log[1] == ARGV[1] and ARGV[2] ~= '-1' then
  if tonumber(log[3]) >= last then return 'older' end
  bytes = bytes + tonumber(log[5])
  local fits = bytes <= tonumber(ARGV[8]) and last - tonumber(log[2]) < tonumber(ARGV[9])
  if fits and log[3] == ARGV[2] and log[4] == ARGV[3] then
    if log[7] and tonumber(log[7]) == last + 1 and log[9] == hash then
      last, hash = tonumber(log[8]), log[10]
    end
    redis.call('HDEL', KEYS[1], 'q', 'r', 's', 't')
    redis.call('HSET', KEYS[1], 'n', last, 'h', hash, 'z', bytes)
    keep_entries()
    return 'kept'
  end
  if fits and tonumber(ARGV[2]) > tonumber(log[3]) then
    local follows = log[7] and log[8] == ARGV[2] and log[10] == ARGV[3]
    if follows or not log[7] then
      if not log[7] then redis.call('HSET', KEYS[1], 'q', first, 's', ARGV[3]) end
      redis.call('HSET', KEYS[1], 'r', last, 't', hash, 'z', bytes)
      keep_entries()
      return 'early'
    end
  end
end
if log[1] == ARGV[1] and tonumber(log[3]) >= last then return 'older' end
redis.call('DEL', KEYS[1])
if log[6] then
  redis.call('HSET', KEYS[1], 'x', log[6])
  redis.call('PEXPIRE', KEYS[1], ARGV[10])
end
local fits = tonumber(ARGV[7]) <= tonumber(ARGV[8]) and last - first < tonumber(ARGV[9])
if ARGV[2] ~= '-1' or not fits then return 'dropped' end
redis.call('HSET', KEYS[1], 'i', ARGV[1], 'f', first, 'n', last, 'h', hash, 'z', ARGV[7])
keep_entries()
return 'kept'
