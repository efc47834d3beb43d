-- Removes an injected event that changed nothing.
-- ARGV: fence key, field, token; stream of events, group, entry id
-- returns: OK | FENCED
local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then return {'FENCED'} end
  redis.call('XACK', arg(4), arg(5), arg(6))
  redis.call('XDEL', arg(4), arg(6))
  return {'OK'}
end
