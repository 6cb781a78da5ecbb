-- One field of INFO, or '' where the server does not say or the user may not ask.
local function server_info(section, field)
  local text = redis.pcall('INFO', section)
  if type(text) ~= 'string' then return '' end
  return string.match(text, '\n' .. field .. ':([^\r\n]*)') or ''
end

-- Which run of which server a bucket was last seen on, as a member of its index: 'generation since run replication-id
-- noted safe replicated', with '-' for an id that is not known. The generation counts the times that the bucket came back
-- and may have lost its newest writes; `since` and `noted` are server times in milliseconds.
local function bucket_run(index)
  local member = redis.call('ZRANGEBYLEX', index, '["', '(#', 'LIMIT', 0, 1)[1]
  if not member then return nil end
  local generation, since, run, replication, noted, safe, replicated =
    string.match(member, '^"(%d+) (%S+) (%S+) (%S+) (%S+) (%d) (%d)$')
  return {
    member = member,
    generation = tonumber(generation),
    since = since,
    run = run,
    replication = replication,
    noted = tonumber(noted),
    safe = safe,
    replicated = replicated,
  }
end

-- Whether the server restarted, or is another one, since the caller learned which generation this is.
local function came_back(index, generation)
  local known = bucket_run(index)
  if not known then return false end
  if known.generation ~= generation then return true end
  if known.run == '-' then return false end
  local run = server_info('server', 'run_id')
  return run ~= '' and run ~= known.run
end
