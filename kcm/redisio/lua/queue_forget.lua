--! use lib_queue
-- Resets the failure counts of keys, so that their next delay is the shortest.
-- ARGV: fence key, field, token ('' for none); queue; key...
-- returns: OK | FENCED
local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then return {'FENCED'} end
  local q = queue(arg(4))
  for i = 5, ARGC do redis.call('HDEL', q.key.failures, arg(i)) end
  return {'OK'}
end
