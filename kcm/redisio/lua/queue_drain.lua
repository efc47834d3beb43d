--! use lib_queue
--! use lib_queue_wakeups
-- Stops or resumes taking from a queue; keys can still be added.
-- ARGV: queue, '1' to stop, '0' to resume
-- returns: OK, the number of keys in flight
local function run()
  local config = P .. ':queue:' .. arg(1) .. ':config'
  if arg(2) == '1' then
    redis.call('HSET', config, 'draining', '1')
  else
    redis.call('HDEL', config, 'draining')
  end
  local q = queue(arg(1))
  ensure_wakeups(q)
  return {'OK', int(redis.call('HLEN', q.key.running))}
end
