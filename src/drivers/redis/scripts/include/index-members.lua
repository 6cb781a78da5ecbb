-- @include sortable

-- The bucket's index is one sorted set of equal scores, so its members are in the order of their bytes and a range of
-- them is a walk through one kind of row. `row` is 'created updated-minute wake expires status', with '-' for a time that
-- is not set (the expiry also says that labels have rows, see label-members.lua), and behind tabs the program, which rows of older versions lack, its priority unless 0, and its limit key if it
-- has one; `name` is tenant, thread and branch, between zero bytes.
local function index_members(row, name)
  local created, updated, wake, expires, status, program = string.match(row, '^(%S+) (%S+) (%S+) (%S+) ([^\t]*)(.*)$')
  created, updated = sortable(created), sortable(updated)
  local tenant, rest = string.match(name, '^(%Z+)%z(.*)$')
  local ofTenant = 't\0' .. tenant .. '\0'
  local members = {
    'c\0' .. created .. '\0' .. name,
    'u\0' .. updated .. '\0' .. name,
    's\0' .. status .. '\0' .. created .. '\0' .. name,
    ofTenant .. 'c\0' .. created .. '\0' .. rest,
    ofTenant .. 'u\0' .. updated .. '\0' .. rest,
    ofTenant .. 's\0' .. status .. '\0' .. created .. '\0' .. rest,
  }
  if wake ~= '-' then
    members[#members + 1] = 'w\0' .. sortable(wake) .. '\0' .. name
    if program ~= '' then
      local of, priority = string.match(program, '^\t([^\t]*)\t?([^\t]*)')
      local lane = of .. '\0' .. sortable(-(tonumber(priority) or 0)) .. '\0'
      -- Marked as due: by priority and tenant. With a time: by priority and time.
      if tonumber(wake) == 0 then
        members[#members + 1] = 'm\0' .. lane .. tenant .. '\0' .. updated .. '\0' .. rest
      else
        members[#members + 1] = 'd\0' .. lane .. sortable(wake) .. '\0' .. name
      end
    end
  end
  if expires ~= '-' then members[#members + 1] = 'e\0' .. sortable(expires) .. '\0' .. name end
  return members
end

local function with_scores(members)
  local scored = {}
  for _, member in ipairs(members) do
    scored[#scored + 1] = 0
    scored[#scored + 1] = member
  end
  return scored
end

-- New rows go in before old ones go: a server at its memory limit refuses a script only as long as it wrote nothing, so
-- one that begins by freeing memory would get through whatever it adds, claims for example, while plain records don't.
local function replace_members(index, old, new)
  if #new > 0 then redis.call('ZADD', index, unpack(with_scores(new))) end
  local kept, gone = {}, {}
  for _, member in ipairs(new) do kept[member] = true end
  for _, member in ipairs(old) do
    if not kept[member] then gone[#gone + 1] = member end
  end
  if #gone > 0 then redis.call('ZREM', index, unpack(gone)) end
end

-- The part of a log's key behind `prefix:{bucket}:log:`.
local function log_name(key)
  return string.match(key, '^[^}]*}:log:(.*)$')
end
