-- The logs of some programs whose turn it is, reserved for who asks.
--
-- KEYS  index of each bucket; on a cluster of one
-- ARGV  1 marker of the store   2 time up to which wake times are over, or '' for the server's   3 limit
--       4 milliseconds to reserve for, or '' to look only   5 tenant, or ''   6 most of each bucket, program, priority and tenant
--       7 tenant whose turn was last, or ''   8 number of programs   9 owner who asks
--       10 milliseconds for which a log that became due is left to another owner who held it last   11.. programs
--       then groups to pass over: program, tenant and limit key, or program and tenant, between zero bytes
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
local limit, most, after = tonumber(ARGV[3]), tonumber(ARGV[6]), ARGV[7]
local programs, passed = {}, {}
for i = 11, 10 + ARGV[8] do programs[#programs + 1] = ARGV[i] end
for i = 11 + ARGV[8], #ARGV do passed[ARGV[i]] = true end
local owner, leave = ARGV[9], tonumber(ARGV[10])
local free, more, nextMs = {}, 0, nil

local function note(ms)
  if not nextMs or ms < nextMs then nextMs = ms end
end

-- Until when it is held, where it ends, since when it is due (by the minute, or the time it was to wake), and its limit key.
local function look(key)
  local fields = redis.call('HMGET', key, 'h', 'k', 'o')
  if not fields[1] then return nil end
  local row, seq = string.match(fields[1], '^([^\n]*)\n(%d+) ')
  local ends = 0
  if fields[3] then ends = tonumber(string.match(fields[1], '^.*\n(.*)$')) end
  if fields[2] then
    local at, till = string.match(fields[2], '^(%d+) (.*)$')
    if at == seq then ends = math.max(ends, tonumber(till)) end
  end
  local minute, wake = string.match(row, '^%S+ (%S+) (%S+) ')
  -- Left to whoever held it last, if it became due since, and just now.
  if leave > 0 and fields[3] and fields[3] ~= owner and ends <= now then
    local index, released = string.match(fields[1], '^[^\n]*\n[^\n]*\n([^\n]*)\n(.*)$')
    local ago = moment - (tonumber(wake) == 0 and cjson.decode(index)[3] or tonumber(wake))
    if ago < leave and ago > -leave and now - ago > tonumber(released) then ends = now + leave - ago end
  end
  local since = tonumber(wake) == 0 and tonumber(minute) or tonumber(wake) / 60000
  return ends, seq, since, string.match(row, '^[^\t]*\t[^\t]*\t[^\t]*\t(.*)$')
end

-- Takes up to `most` of a range that are free; `found` says how many there were.
local function gather(index, start, range, program, priority, name_of, most_here)
  local from, found = range[1], 0
  while from do
    local rows = redis.call('ZRANGEBYLEX', index, from, range[2], 'LIMIT', 0, 50)
    from = #rows == 50 and '(' .. rows[50]
    for _, row in ipairs(rows) do
      local name, tenant = name_of(row)
      if ARGV[5] == '' or tenant == ARGV[5] then
        if found == most_here then
          more = 1
          return found
        end
        local ends, seq, since, key = look(start .. name)
        if ends and ends > now then
          note(ends - now)
        elseif ends then
          local lane = program .. '\0' .. tenant
          if not passed[lane] and not (key and passed[lane .. '\0' .. key]) then
            found = found + 1
            free[#free + 1] = { priority, tenant, since, start .. name, seq, name }
          end
        end
      end
    end
  end
  return found
end

for _, index in ipairs(KEYS) do
  if not redis.call('ZSCORE', index, ARGV[1]) then return 'lost' end
  local start = string.match(index, '^(.*)index$') .. 'log:'
  for _, program in ipairs(programs) do
    local marked, dated = 'm\0' .. program .. '\0', 'd\0' .. program .. '\0'
    local level, enough = '', 0
    while level do
      -- The next priority of this program that has anything.
      local next_level = nil
      for _, kind in ipairs({ marked, dated }) do
        local from = level == '' and '[' .. kind or '(' .. kind .. level .. '\1'
        local first = redis.call('ZRANGEBYLEX', index, from, '(' .. string.sub(kind, 1, -2) .. '\1', 'LIMIT', 0, 1)[1]
        local there = first and string.sub(first, #kind + 1, #kind + 16)
        if there and (not next_level or there < next_level) then next_level = there end
      end
      level = next_level
      if level then
        local lane = marked .. level .. '\0'
        if enough < most then
          -- Marked as due, of tenants by turns, beginning behind the one whose turn was last.
          local lanes, whose, wrapped = 0, ARGV[5] ~= '' and ARGV[5] or after, after == ''
          while lanes < most do
            if ARGV[5] == '' then
              local from = whose == '' and '[' .. lane or '(' .. lane .. whose .. '\1'
              local first = redis.call('ZRANGEBYLEX', index, from, '(' .. string.sub(lane, 1, -2) .. '\1', 'LIMIT', 0, 1)[1]
              whose = first and string.match(first, '^(%Z+)', #lane + 1)
            end
            if not whose then
              if wrapped then break end
              wrapped, whose = true, ''
            elseif wrapped and after ~= '' and ARGV[5] == '' and whose > after then
              break
            else
              local own = lane .. whose .. '\0'
              local found = 0
              if not passed[program .. '\0' .. whose] then
                found = gather(index, start, { '[' .. own, '(' .. string.sub(own, 1, -2) .. '\1' }, program, level, function(row)
                  return whose .. '\0' .. string.sub(row, #own + 18), whose
                end, most)
              end
              if found > 0 then lanes = lanes + 1 end
              enough = enough + found
              if ARGV[5] ~= '' then break end
            end
          end
          if lanes >= most then more = 1 end
          -- Those whose time has come.
          local timed = dated .. level .. '\0'
          enough = enough + gather(index, start, { '[' .. timed, '(' .. timed .. wall .. '\1' }, program, level, function(row)
            local name = string.sub(row, #timed + 18)
            return name, string.match(name, '^(%Z+)')
          end, math.max(most, 50))
        else
          more = 1
        end
        local timed = dated .. level .. '\0'
        local later = redis.call('ZRANGEBYLEX', index, '[' .. timed .. wall .. '\1', '(' .. string.sub(timed, 1, -2) .. '\1', 'LIMIT', 0, 1)
        if later[1] then
          local ends, _, since = look(start .. string.sub(later[1], #timed + 18))
          if ends then note(since * 60000 - moment) end
        end
      end
    end
  end
end

-- Which turn of its tenant each is, then the order of all of them.
table.sort(free, function(a, b)
  if a[3] ~= b[3] then return a[3] < b[3] end
  return a[6] < b[6]
end)
local turns = {}
for _, log in ipairs(free) do
  local lane = log[1] .. log[2]
  turns[lane] = (turns[lane] or 0) + 1
  log[7] = turns[lane]
end
table.sort(free, function(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  if a[7] ~= b[7] then return a[7] < b[7] end
  if a[2] ~= b[2] then
    if (a[2] > after) ~= (b[2] > after) then return a[2] > after end
    return a[2] < b[2]
  end
  return a[6] < b[6]
end)
local reply = { more, nextMs and string.format('%.3f', nextMs) or '' }
for i, log in ipairs(free) do
  if i > limit then
    reply[1] = 1
    break
  end
  if ARGV[4] ~= '' then redis.call('HSET', log[4], 'k', log[5] .. ' ' .. string.format('%.3f', now + ARGV[4])) end
  reply[#reply + 1] = log[6]
  reply[#reply + 1] = head_row(log[4])
end
return reply
