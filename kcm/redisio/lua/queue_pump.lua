--! use lib_queue
--! use lib_queue_wakeups
-- Moves delayed keys that are due to the waiting keys, in all queues.
-- ARGV: most keys to move in this call
-- returns: OK, now (ms), earliest due time left (ms) or '', keys moved
local function pump(q, most)
  local due = redis.call('ZRANGE', q.key.delayed, '-inf', ms(MOMENT), 'BYSCORE', 'LIMIT', 0, most)
  for _, key in ipairs(due) do
    redis.call('ZREM', q.key.delayed, key)
    add(q, key)
  end
  if #due > 0 then ensure_wakeups(q) end
  return #due, redis.call('ZRANGE', q.key.delayed, 0, 0, 'WITHSCORES')[2]
end

local function run()
  local left, earliest = tonumber(arg(1)), nil
  for _, name in ipairs(queues_with('delayed')) do
    local moved, next_due = pump(queue(name), left)
    left = left - moved
    if next_due and (not earliest or tonumber(next_due) < earliest) then
      earliest = tonumber(next_due)
    end
  end
  local moved = tonumber(arg(1)) - left
  return {'OK', ms(MOMENT), earliest and ms(earliest) or '', int(moved)}
end
