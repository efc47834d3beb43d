-- Replaces the measurements that nodes report of themselves and of their pods.
-- ARGV: ms that a report lasts; then per node: key, number of values, field, value...
-- returns: OK
local function run()
  local i = 2
  while i <= ARGC do
    local key, last = arg(i), i + 1 + tonumber(arg(i + 1))
    redis.call('DEL', key)
    for n = i + 2, last, 2 do redis.call('HSET', key, arg(n), arg(n + 1)) end
    redis.call('PEXPIRE', key, arg(1))
    i = last + 1
  end
  return {'OK'}
end
