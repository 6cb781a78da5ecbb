-- A number as 16 hex digits that sort like the numbers: the bits of a double, the sign turned around, and all of them
-- for a negative one.
local function sortable(text)
  local high, low = struct.unpack('>I4I4', struct.pack('>d', tonumber(text) + 0))
  if high < 0x80000000 then
    high = high + 0x80000000
  else
    high, low = 0xffffffff - high, 0xffffffff - low
  end
  return string.format('%08x%08x', high, low)
end
