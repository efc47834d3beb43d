--! use lib_queue
--! use lib_queue_wakeups
-- Adds keys to any number of queues and sends the wake-ups that they need.
-- ARGV: groups of queue, delay in ms (0: now) or 'limited', number of keys, key...
-- returns: OK, the number of keys that were not waiting already
local function run()
  local touched, added = add_all(1)
  for _, q in pairs(touched) do for_queue(ensure_wakeups, q) end
  raise_failure()
  return {'OK', int(added)}
end
