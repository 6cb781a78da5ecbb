-- Checks or places the marker by which every later operation sees that the bucket still holds what the store put there,
-- and notes which run of the server holds it. A server that restarted, or another one that took over, may lack the newest
-- writes: unless that can't be, a new generation begins, and what was under way in the old one counts as open.
--
-- KEYS  1 index of the bucket
-- ARGV  1 marker of the store   2 'place' while the store is being founded, 'accept' to go on after a loss, else 'check'
--       3 '1' if a restart loses nothing   4 '1' if a replica has whatever was acknowledged   5 '1' on a cluster
-- Returns { generation, when it began in milliseconds }, 'missing', or 'other' when the bucket belongs to a store whose
-- own record is gone.

-- @include server-run

if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  local others = redis.call('ZRANGEBYLEX', KEYS[1], '[!', '("')
  if #others > 0 and ARGV[2] ~= 'accept' then return 'other' end
  if ARGV[2] == 'check' then return 'missing' end
  if #others > 0 then redis.call('ZREM', KEYS[1], unpack(others)) end
  redis.call('ZADD', KEYS[1], 0, ARGV[1])
end

local run, replication = server_info('server', 'run_id'), server_info('replication', 'master_replid')
if run == '' then run = '-' end
if replication == '' then replication = '-' end
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local stamp = string.format('%.3f', now)
local known = bucket_run(KEYS[1])
local generation, since, noted, safe, replicated = 0, stamp, stamp, ARGV[3], ARGV[4]
if known then
  generation, since, noted = known.generation, known.since, string.format('%.3f', known.noted)
  -- Settings may have been others when the data was written; and whoever waits for replicas speaks for itself alone.
  if known.safe == '0' then safe = '0' end
  if known.replicated == '0' then replicated = '0' end
  if run ~= known.run and run ~= '-' and known.run ~= '-' then
    -- Uptime is counted in whole seconds.
    local wasUp = now - (tonumber(server_info('server', 'uptime_in_seconds')) or 0) * 1000 + 1000 < known.noted
    local isSuccessor = server_info('replication', 'master_replid2') == known.replication
    -- A server that ran beside the old one is its replica, or the node of a cluster to which the slot was moved.
    local tookOver = isSuccessor or (wasUp and ARGV[5] ~= '1')
    local restarted = not wasUp
    if (tookOver and known.replicated == '0') or (restarted and safe == '0') then
      generation, since = generation + 1, stamp
    end
    noted, safe, replicated = stamp, ARGV[3], ARGV[4]
  end
end
local member = string.format('"%d %s %s %s %s %s %s', generation, since, run, replication, noted, safe, replicated)
if not known or known.member ~= member then
  if known then redis.call('ZREM', KEYS[1], known.member) end
  redis.call('ZADD', KEYS[1], 0, member)
end
return { generation, since }
