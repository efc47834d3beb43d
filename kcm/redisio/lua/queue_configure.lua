--! use lib_queue
--! use lib_queue_wakeups
-- Stores the settings of queues; any process may store them again. Keys that were added before get
-- their wake-ups now.
-- ARGV: for each queue its name, how many arguments follow for it, and these: pairs of a config
-- field and its value (times in ms)
-- returns: OK
local function run()
  local i = 1
  while i <= ARGC do
    local name, last = arg(i), i + 1 + tonumber(arg(i + 1))
    for j = i + 2, last, 2 do
      redis.call('HSET', P .. ':queue:' .. name .. ':config', arg(j), arg(j + 1))
    end
    redis.call('SADD', P .. ':queues', name)
    ensure_wakeups(queue(name))
    i = last + 1
  end
  return {'OK'}
end
