-- One step of a walk through all keys of a server: whose they are. Names of a hundred thousand keys don't travel to find
-- the few tenants in them.
--
-- ARGV  1 cursor   2 pattern of the store's keys   3 about how many keys to look at   4 length of the store's prefix
-- Returns the next cursor, then each tenant once.

local naming = { log = true, thread = true, items = true, blobs = true }
local step = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local reply, seen = { step[1] }, {}
for _, key in ipairs(step[2]) do
  local kind, tenant = string.match(key, '^:{[^}]*}:([a-z-]+):(%Z+)', ARGV[4] + 1)
  if kind and naming[kind] and not seen[tenant] then
    seen[tenant] = true
    reply[#reply + 1] = tenant
  end
end
return reply
