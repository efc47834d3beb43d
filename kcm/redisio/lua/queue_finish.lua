--! use lib_queue
--! use lib_queue_wakeups
--! use lib_queue_takes
-- Ends syncs, and takes the next keys if the run continues. A lost token affects only its own
-- key.
-- ARGV: queue, the most keys to take next (0 if the run ends), then per key: key, token,
--   outcome, delay ms
--   outcomes: done (forget failures), retry (after a rate-limited delay),
--   requeue (forget failures, add it again after the delay), abandon (it waits as before)
-- returns: OK, then per key: OK | LOST, ms until it is due again ('' if it is not);
--   then, if keys were taken, what `take_keys` appends
local outcomes = {}

function outcomes.done(q, key)
  redis.call('HDEL', q.key.failures, key)
  return ''
end

function outcomes.retry(q, key)
  local delay = limited_delay(q, key)
  add_after(q, key, delay)
  return ms(delay)
end

function outcomes.requeue(q, key, delay)
  redis.call('HDEL', q.key.failures, key)
  add_after(q, key, delay)
  return ms(delay)
end

function outcomes.abandon(q, key)
  let_wait(q, key, ms(MOMENT))
  return '0'
end

-- In client-go, Done comes after AddAfter: a key that was added meanwhile waits again at once,
-- and is added after the delay as well.
local function finish(q, key, token, outcome, delay)
  if not fence_holds(q.key.running, key, token) then return 'LOST', '' end
  local started = redis.call('HGET', q.key.starts, key)
  observe(q, 'work', MOMENT - tonumber(started or MOMENT))
  end_run(q, key)
  run_again(q, key)
  return 'OK', outcomes[outcome](q, key, delay)
end

local function run()
  local q = queue(arg(1))
  local reply = {'OK'}
  for i = 3, ARGC, 4 do
    local n = #reply
    reply[n + 1], reply[n + 2] = finish(q, arg(i), arg(i + 1), arg(i + 2), tonumber(arg(i + 3)))
    if reply[n + 1] == 'OK' then redis.call('HSET', q.key.stats, 'last_finish', int(NOW)) end
  end
  local most = tonumber(arg(2))
  if most > 0 then take_keys(q, '', most, reply) end
  ensure_wakeups(q)
  return reply
end
