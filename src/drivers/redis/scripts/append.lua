-- Compare-and-append to logs that exist, one or many. Each append is all or nothing; one that conflicts does not hinder
-- the others. On a cluster all logs of a call are in one bucket.
--
-- KEYS  log and index of its bucket for each append, then the logs that appends require
-- ARGV  1 all appends, as pack-append.ts packs them   2.. the values of their entries' fields
-- Returns 1 if all of them landed, otherwise for each 1, or { 'conflict' | 'held' | 'came-back', head row }.

local pack, at, argument = ARGV[1], 1, 1
local results, count, landed = {}, 0, true
local now, extendedBy, extendedTo
while at <= #pack do
  count = count + 1
  local key, index = KEYS[2 * count - 1], KEYS[2 * count]
  local ms, length, expectLength, headLength, ownerLength, labelsLength, incarnationLength, lease, required, generation, values, expectAt =
    struct.unpack('>dI4I4I4I4I4I4I4I4I4I4', pack, at)
  local headAt = expectAt + expectLength
  local ownerAt = headAt + headLength
  local labelsAt = ownerAt + ownerLength
  local incarnationAt = labelsAt + labelsLength
  local namesAt = incarnationAt + incarnationLength
  local expect = string.sub(pack, expectAt, headAt - 1)
  local head = redis.call('HGET', key, 'h')
  local result = 1
  local oldRow

  -- What is expected begins with the index row after this append: most appends leave it as it is, and are done here
  -- with one comparison.
  if not head or string.find(head, expect, 1, true) ~= 1 then
    local row, core
    if head then row, core = string.match(head, '^([^\n]*)\n([^\n]*)\n') end
    if core and core == string.match(expect, '\n([^\n]*)\n') then oldRow = row else result = 'conflict' end
  end
  if result == 1 and required > 0 then
    local parent = redis.call('HGET', KEYS[required], 'h')
    local incarnation = string.sub(pack, incarnationAt, namesAt - 1)
    if not parent or string.match(parent, '^[^\n]*\n%d+ %S+ %d+ ([^\n]*)\n') ~= incarnation then result = 'conflict' end
  end
  if result == 1 and lease ~= 0 and not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + time[2] / 1000
  end
  -- Who takes a log must know what may be missing from it.
  if result == 1 and (lease == 1 or lease == 2) then
    -- @include server-run
    if came_back(index, generation) then result = 'came-back' end
  end
  if result == 1 and lease == 1 and tonumber(string.match(head, '^.*\n(.*)$')) > now then result = 'held' end

  if result == 1 then
    local leaseEnd
    if lease == 0 then
      leaseEnd = string.match(head, '^.*\n(.*)$')
    elseif lease == 4 then
      leaseEnd = string.format('%.3f', now)
    else
      if ms ~= extendedBy then extendedBy, extendedTo = ms, string.format('%.3f', now + ms) end
      leaseEnd = extendedTo
    end
    local newHead = string.sub(pack, headAt, ownerAt - 1) .. leaseEnd
    if oldRow or labelsLength > 0 then
      -- @include index-members
      -- @include label-members
      -- @include replace-labels
      local name, newRow = log_name(key), string.match(newHead, '^[^\n]*')
      if oldRow then replace_members(index, index_members(oldRow, name), index_members(newRow, name)) end
      -- Also where the last writer was of a version without rows of labels, and where they would be in the wrong place.
      local created = string.match(newRow, '^%S+')
      if labelsLength > 0 then
        replace_labels(index, key, name, created, string.sub(pack, labelsAt, incarnationAt - 1))
      elseif not has_label_rows(oldRow) or string.match(oldRow, '^%S+') ~= created then
        replace_labels(index, key, name, created, redis.call('HGET', key, 'g'))
      end
    end
    -- An owner is sure of what it saw. A guest leaves the question to the next owner, and says what was there before it.
    local stamp
    if generation > 0 then
      local owned, noted = string.match(redis.call('HGET', key, 'n') or '0', '^(%d+) ?(%d*)')
      if tonumber(owned) ~= generation then
        if lease ~= 0 then
          stamp = tostring(generation)
        elseif tonumber(noted) ~= generation then
          stamp = owned .. ' ' .. generation .. ' ' .. string.match(head, '\n(%d+) ')
        end
      end
    end
    local names = string.sub(pack, namesAt, at + length - 1)
    if values == 1 and labelsLength == 0 and not stamp and lease ~= 1 and lease ~= 2 then
      redis.call('HSET', key, 'h', newHead, names, ARGV[argument + 1])
    else
      local fields = { 'h', newHead }
      if lease == 1 or lease == 2 then
        fields[3] = 'o'
        fields[4] = string.sub(pack, ownerAt, labelsAt - 1)
      end
      if stamp then
        fields[#fields + 1] = 'n'
        fields[#fields + 1] = stamp
      end
      if labelsLength > 0 then
        fields[#fields + 1] = 'g'
        fields[#fields + 1] = string.sub(pack, labelsAt, incarnationAt - 1)
      end
      local value = argument
      for name in string.gmatch(names, '%S+') do
        value = value + 1
        fields[#fields + 1] = name
        fields[#fields + 1] = ARGV[value]
      end
      -- @include set-fields
      set_fields(key, fields, 1)
    end
    results[count] = 1
  else
    -- @include head-row
    results[count] = { result, head_row(key) }
    landed = false
  end
  at, argument = at + length, argument + values
end
return landed and 1 or results
