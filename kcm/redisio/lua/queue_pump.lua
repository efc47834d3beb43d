--! use lib_queue
--! use lib_queue_wakeups
-- Moves delayed keys that are due to the waiting keys, in all queues.
-- ARGV: most keys to move in this call
-- returns: OK, now (ms), keys moved, and name and earliest due time (ms) of each queue with delayed keys
local function pump(name, most)
  local q = queue(name)
  local due = redis.call('ZRANGE', q.key.delayed, '-inf', ms(MOMENT), 'BYSCORE', 'LIMIT', 0, most)
  for _, key in ipairs(due) do
    redis.call('ZREM', q.key.delayed, key)
    add(q, key)
  end
  if #due > 0 then ensure_wakeups(q) end
  return #due, redis.call('ZRANGE', q.key.delayed, 0, 0, 'WITHSCORES')[2]
end

local function run()
  local left, queues = tonumber(arg(1)), {}
  for _, name in ipairs(queues_with('delayed')) do
    local moved, earliest = for_queue(pump, name, left)
    left = left - (moved or 0)
    if earliest then
      queues[#queues + 1] = name
      queues[#queues + 1] = ms(tonumber(earliest))
    end
  end
  raise_failure()
  return {'OK', ms(MOMENT), int(tonumber(arg(1)) - left), unpack(queues)}
end
