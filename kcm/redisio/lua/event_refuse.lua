-- Moves an injected event to the dead letters (design 0021).
-- ARGV: fence key, field, token; stream of events, group, entry id; dead stream, most
--       entries there, stats hash; then field, value... of the dead letter
-- returns: OK | FENCED
local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then return {'FENCED'} end
  local fields = {}
  for n = 10, ARGC do fields[#fields + 1] = arg(n) end
  redis.call('XADD', arg(7), 'MAXLEN', '~', arg(8), '*', unpack(fields))
  redis.call('XACK', arg(4), arg(5), arg(6))
  redis.call('XDEL', arg(4), arg(6))
  redis.call('HINCRBY', arg(9), 'refused', 1)
  return {'OK'}
end
