-- Begins one pass of a periodic loop, unless it has been run already (design 0023).
-- ARGV: fence key, field, token; state key; due time in ms; interval in ms
-- returns: RUN, now in ms, epoch; SKIP when the last pass was due less than half an interval
--          before this one, or after it, as this message is late; or FENCED
local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then return {'FENCED'} end
  local last = tonumber(redis.call('HGET', arg(4), '.due') or '-1')
  local passed, interval = tonumber(arg(5)) - last, tonumber(arg(6))
  -- Messages expire after an interval. One that was due much earlier is from a clock set back.
  if last >= 0 and passed < interval / 2 and passed > -2 * interval then return {'SKIP'} end
  redis.call('HSET', arg(4), '.due', arg(5), '.began', int(NOW))
  return {'RUN', int(NOW), redis.call('HGET', P .. ':meta', 'epoch_start') or '0'}
end
