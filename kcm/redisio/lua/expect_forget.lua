-- Removes the expectations of a key whose object is gone.
-- ARGV: fence key, field, token ('' '' '' for none); expectations key
-- returns: OK | FENCED
local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then return {'FENCED'} end
  redis.call('DEL', arg(4))
  return {'OK'}
end
