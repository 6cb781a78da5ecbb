-- Erases one branch or a whole thread.
--
-- KEYS  1 thread   2 index of the bucket   3.. logs
-- ARGV  1 'thread' or 'branch'            2 tombstone, or '' to leave none
--       3 '1' if the logs must be exactly the expected ones, else '0'
--       4.. for each log of KEYS: its branch, and 'seq incarnation' it must have ('' when nothing is expected)
-- Returns { 'erased', number }, { 'conflict' }, or { 'again', branches of the thread } when KEYS is not all of them:
-- keys that were not declared are not touched.

-- @include index-members
-- @include label-members

local exact = ARGV[3] == '1'
local branches = {}
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 1) == '+' then branches[#branches + 1] = string.sub(field, 2) end
end

local logs = {}
for i = 3, #KEYS do
  local head, list = unpack(redis.call('HMGET', KEYS[i], 'h', 'l'))
  local branch, expected = ARGV[2 * i - 2], ARGV[2 * i - 1]
  if head then
    local row, seq, incarnation = string.match(head, '^([^\n]*)\n(%d+) %S+ %d+ ([^\n]*)\n')
    if exact and expected ~= seq .. ' ' .. incarnation then return { 'conflict' } end
    logs[#logs + 1] = { key = KEYS[i], branch = branch, row = row, list = list }
  elseif exact and expected ~= '' then
    return { 'conflict' }
  end
end
if ARGV[1] == 'thread' and #logs ~= #branches then
  if exact then return { 'conflict' } end
  return { 'again', branches }
end

for _, log in ipairs(logs) do
  local name = log_name(log.key)
  local members = index_members(log.row, name)
  for _, member in ipairs(label_members(log.list, name)) do members[#members + 1] = member end
  redis.call('ZREM', KEYS[2], unpack(members))
  redis.call('UNLINK', log.key)
  redis.call('HDEL', KEYS[1], '+' .. log.branch)
end
if #logs == #branches then
  if ARGV[2] == '' then
    redis.call('DEL', KEYS[1])
  elseif #logs > 0 then
    redis.call('HSET', KEYS[1], 'tombstone', ARGV[2])
  end
end
return { 'erased', #logs }
