-- Moves one dead letter back into the stream of injected events, with its own fields only.
-- ARGV: dead stream, entry id, stream of events
-- returns: OK, '1' or '0' when the letter is gone
local function run()
  local entry = redis.call('XRANGE', arg(1), arg(2), arg(2))[1]
  if not entry then return {'OK', '0'} end
  local fields = {}
  for n = 1, #entry[2], 2 do
    local own = string.match(entry[2][n], '^field%.(.*)$')
    if own then
      fields[#fields + 1] = own
      fields[#fields + 1] = entry[2][n + 1]
    end
  end
  if #fields > 0 then redis.call('XADD', arg(3), '*', unpack(fields)) end
  redis.call('XDEL', arg(1), arg(2))
  return {'OK', '1'}
end
