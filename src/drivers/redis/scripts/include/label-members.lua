-- @include sortable

-- Which rows of the index name a log by its labels, as its field `l` keeps them: when it was created, and a token for each
-- tag and each metadata value. A token is short whatever the label is; one that stands for two labels does no harm, since
-- whoever reads by it looks at the labels themselves. `labels` is field `g`. The client does the same (label-index.ts).
-- Nil for labels that can't be read.
local function label_list(created, labels)
  local isRead, list = pcall(function()
    local decoded = cjson.decode(labels)
    local tokens = { created }
    local function add(text) tokens[#tokens + 1] = string.sub(redis.sha1hex(text), 1, 12) end
    for _, tag in ipairs(decoded[1]) do add('t' .. tag) end
    for _, pair in ipairs(cjson.decode(decoded[2])) do
      local value = pair[2]
      if type(value) == 'number' then
        value = 'n' .. sortable(value)
      elseif type(value) == 'string' then
        value = 's' .. value
      else
        value = 'b' .. tostring(value)
      end
      add('m' .. pair[1] .. '\0' .. value)
    end
    return table.concat(tokens, ' ')
  end)
  if isRead then return list end
  return nil
end

-- The rows of a list, none for a log that has no field `l`.
local function label_members(list, name)
  local members = {}
  if not list then return members end
  local created, tokens = string.match(list, '^(%S+)(.*)$')
  local tenant, rest = string.match(name, '^(%Z+)%z(.*)$')
  local place = '\0' .. tenant .. '\0' .. sortable(created) .. '\0' .. rest
  for token in string.gmatch(tokens, '%S+') do members[#members + 1] = 'l\0' .. token .. place end
  return members
end

-- Whether the writer of an index row also wrote the rows of labels. Versions that know nothing of them write the expiry as
-- it is, or '-'; others move it out of the range of times (see `markedExpiry` in rows.ts).
local function has_label_rows(row)
  local expires = tonumber((string.match(row, '^%S+ %S+ %S+ (%S+) ')))
  return expires ~= nil and (expires < -5e16 or expires > 1e299)
end
