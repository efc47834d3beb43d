-- Changes the memory of a controller about a key.
-- ARGV: fence key, field, token; memory key; number of fields to remove; those; field, value...
-- returns: OK | FENCED
local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then return {'FENCED'} end
  local gone = tonumber(arg(5))
  for n = 6, 5 + gone do redis.call('HDEL', arg(4), arg(n)) end
  for n = 6 + gone, ARGC, 2 do redis.call('HSET', arg(4), arg(n), arg(n + 1)) end
  return {'OK'}
end
