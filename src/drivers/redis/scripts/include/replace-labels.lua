-- Gives a log the rows of its labels in place of those that it has. Behind index-members and label-members.
local function replace_labels(index, key, name, created, labels)
  local list = label_list(created, labels)
  local old, new = redis.call('HGET', key, 'l'), label_members(list, name)
  replace_members(index, label_members(old, name), new)
  if #new > 0 then
    redis.call('HSET', key, 'l', list)
  elseif old then
    redis.call('HDEL', key, 'l')
  end
end
