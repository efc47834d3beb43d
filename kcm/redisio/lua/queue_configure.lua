--! use lib_queue
--! use lib_queue_wakeups
-- Stores the settings of a queue; any process may store them again. Keys that were added before
-- get their wake-ups now.
-- ARGV: queue, then pairs of a config field and its value (times in ms)
-- returns: OK
local function run()
  local name = arg(1)
  for i = 2, ARGC, 2 do
    redis.call('HSET', P .. ':queue:' .. name .. ':config', arg(i), arg(i + 1))
  end
  redis.call('SADD', P .. ':queues', name)
  ensure_wakeups(queue(name))
  return {'OK'}
end
