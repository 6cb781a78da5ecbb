-- The logs of some programs that are due and that nobody holds, reserved for who asks.
--
-- KEYS  index of each bucket; on a cluster of one
-- ARGV  1 marker of the store   2 time up to which wake times are over, or '' for the server's   3 limit
--       4 milliseconds to reserve for   5 tenant, or ''   6 most of each bucket and program   7.. programs
-- Returns 'lost', or { 1 if more may be due, milliseconds until the next may be or '', name and head row of each log that
-- was taken }.
--
-- The logs are found by their rows in the index, so their keys can't be declared. They are in the slot of the index.

-- @include sortable
-- @include head-row

local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local moment = ARGV[2] == '' and math.floor(now) or tonumber(ARGV[2])
local wall = sortable(moment)
local limit, most = tonumber(ARGV[3]), tonumber(ARGV[6])
local zero = sortable(0)
local free, more, nextMs = {}, 0, nil

local function note(ms)
  if not nextMs or ms < nextMs then nextMs = ms end
end

-- Until when it is held, where it ends, and the minute since which it is due.
local function look(key)
  local fields = redis.call('HMGET', key, 'h', 'k', 'o')
  if not fields[1] then return nil end
  local seq = string.match(fields[1], '^[^\n]*\n(%d+) ')
  local ends = 0
  if fields[3] then ends = tonumber(string.match(fields[1], '^.*\n(.*)$')) end
  if fields[2] then
    local at, till = string.match(fields[2], '^(%d+) (.*)$')
    if at == seq then ends = math.max(ends, tonumber(till)) end
  end
  local minute, wake = string.match(fields[1], '^%S+ (%S+) (%S+) ')
  local since = tonumber(wake) == 0 and tonumber(minute) or tonumber(wake) / 60000
  return ends, seq, since
end

for _, index in ipairs(KEYS) do
  if not redis.call('ZSCORE', index, ARGV[1]) then return 'lost' end
  local start = string.match(index, '^(.*)index$') .. 'log:'
  for p = 7, #ARGV do
    local prefix = 'p\0' .. ARGV[p] .. '\0'
    -- Marked as due, and those whose time has come: neither keeps the other waiting.
    for _, range in ipairs({ { '[' .. prefix .. zero, '(' .. prefix .. zero .. '\1' }, { '(' .. prefix .. zero .. '\1', '(' .. prefix .. wall .. '\1' } }) do
      local from, found = range[1], 0
      while from do
        local rows = redis.call('ZRANGEBYLEX', index, from, range[2], 'LIMIT', 0, 50)
        from = #rows == 50 and '(' .. rows[50]
        for _, row in ipairs(rows) do
          local name = string.sub(row, #prefix + 35)
          if ARGV[5] == '' or string.sub(name, 1, #ARGV[5] + 1) == ARGV[5] .. '\0' then
            if found == most then
              more, from = 1, nil
              break
            end
            local ends, seq, since = look(start .. name)
            if ends and ends > now then
              note(ends - now)
            elseif ends then
              found = found + 1
              free[#free + 1] = { since, start .. name, seq, name }
            end
          end
        end
      end
    end
    local later = redis.call('ZRANGEBYLEX', index, '[' .. prefix .. wall .. '\1', '(' .. 'p\0' .. ARGV[p] .. '\1', 'LIMIT', 0, 1)
    if later[1] then
      local ends, _, since = look(start .. string.sub(later[1], #prefix + 35))
      if ends then note(since * 60000 - moment) end
    end
  end
end

table.sort(free, function(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  return a[4] < b[4]
end)
local reply = { more, nextMs and string.format('%.3f', nextMs) or '' }
for i, log in ipairs(free) do
  if i > limit then
    reply[1] = 1
    break
  end
  redis.call('HSET', log[2], 'k', log[3] .. ' ' .. string.format('%.3f', now + ARGV[4]))
  reply[#reply + 1] = log[4]
  reply[#reply + 1] = head_row(log[2])
end
return reply
