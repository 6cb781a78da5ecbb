-- Appends to `reply` the two fields of every entry from `first` to `last`, in turn; the second is nil for a small body,
-- which lies in the first.
local function get_entries(reply, key, first, last)
  while first <= last do
    local fields = {}
    local stop = math.min(last, first + 1999)
    for seq = first, stop do
      fields[#fields + 1] = 'm' .. seq
      fields[#fields + 1] = 'd' .. seq
    end
    local values = redis.call('HMGET', key, unpack(fields))
    for i = 1, #values do reply[#reply + 1] = values[i] end
    first = stop + 1
  end
  return reply
end
