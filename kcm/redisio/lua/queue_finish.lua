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
local forgotten = {} -- keys whose failures are to be forgotten

function outcomes.done(_, key)
  forgotten[#forgotten + 1] = key
  return ''
end

function outcomes.retry(q, key)
  local delay = limited_delay(q, key)
  add_after(q, key, delay)
  return ms(delay)
end

function outcomes.requeue(q, key, delay)
  forgotten[#forgotten + 1] = key
  add_after(q, key, delay)
  return ms(delay)
end

function outcomes.abandon(q, key)
  let_wait(q, key, ms(MOMENT))
  return '0'
end

-- Ends the runs of those of the keys whose tokens hold. Returns true for each of them, by its place,
-- and what `added_again` returns.
local function end_held(q)
  local keys, places, ended, seen = {}, {}, {}, {}
  for i = 3, ARGC, 4 do keys[#keys + 1] = arg(i) end
  if #keys == 0 then return places, {} end
  local held = redis.call('HMGET', q.key.running, unpack(keys))
  local starts = redis.call('HMGET', q.key.starts, unpack(keys))
  local since = added_again(q, keys)
  for n, key in ipairs(keys) do
    if not seen[key] and token_holds(held[n], arg(4 * n)) then
      seen[key], places[n], ended[#ended + 1] = true, true, key
      observe(q, 'work', MOMENT - tonumber(starts[n] or MOMENT))
    end
  end
  if #ended > 0 then
    end_runs(q, ended)
    redis.call('HSET', q.key.stats, 'last_finish', int(NOW))
  end
  return places, since
end

-- In client-go, Done comes after AddAfter: a key that was added meanwhile waits again at once,
-- and is added after the delay as well.
local function settle(q, key, since, outcome, delay)
  run_again(q, key, since)
  return 'OK', outcomes[outcome](q, key, delay)
end

local function run()
  local q = queue(arg(1))
  local reply = {'OK'}
  local held, since = end_held(q)
  for i = 3, ARGC, 4 do
    local n, at = (i + 1) / 4, #reply
    reply[at + 1], reply[at + 2] = 'LOST', ''
    if held[n] then
      reply[at + 1], reply[at + 2] = settle(q, arg(i), since[n], arg(i + 2), tonumber(arg(i + 3)))
    end
  end
  if #forgotten > 0 then redis.call('HDEL', q.key.failures, unpack(forgotten)) end
  local most = tonumber(arg(2))
  if most > 0 then take_keys(q, '', most, reply) end
  ensure_wakeups(q)
  return reply
end
