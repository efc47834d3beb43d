--! use lib_queue
-- Renews leases, but never beyond take + renewal limit (design 0001).
-- ARGV: triples of queue, key, token
-- returns: OK, then per triple: OK | LIMIT (held until its lease ends) | LOST
local function renew(q, key, token)
  if not fence_holds(q.key.running, key, token) then return 'LOST' end
  local limit = tonumber(redis.call('HGET', q.key.starts, key) or '0') + q.renew_limit
  redis.call('ZADD', q.key.leases, int(math.floor(math.min(NOW + q.lease, limit))), key)
  return NOW + q.lease < limit and 'OK' or 'LIMIT'
end

local function run()
  local reply = {'OK'}
  for i = 1, ARGC, 3 do
    reply[#reply + 1] = renew(queue(arg(i)), arg(i + 1), arg(i + 2))
  end
  return reply
end
