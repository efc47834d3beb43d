-- Replaces the changes that a controller expects for a key.
-- ARGV: fence key, field, token ('' '' '' for none); expectations key;
--       time to live in ms; then entries, each 'create <name>' or 'delete <uid>'
-- returns: OK | FENCED
local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then return {'FENCED'} end
  local key = arg(4)
  redis.call('DEL', key)
  redis.call('HSET', key, '.expires', int(NOW + tonumber(arg(5))))
  for n = 6, ARGC do redis.call('HSET', key, arg(n), '') end
  redis.call('PEXPIRE', key, arg(5))
  return {'OK'}
end
