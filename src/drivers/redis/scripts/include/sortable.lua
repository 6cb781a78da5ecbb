-- A number as 16 hex digits that sort like the numbers: the bits of a double, the sign turned around, and all of them
-- for a negative one.
local function sortable(text)
  local bytes = { string.byte(struct.pack('>d', tonumber(text) + 0), 1, 8) }
  if bytes[1] < 128 then
    bytes[1] = bytes[1] + 128
  else
    for i = 1, 8 do bytes[i] = 255 - bytes[i] end
  end
  return string.format('%02x%02x%02x%02x%02x%02x%02x%02x', unpack(bytes))
end
