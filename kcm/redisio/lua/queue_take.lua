--! use lib_queue
--! use lib_queue_wakeups
-- Takes waiting keys: each gets a fencing token, a lease and a start time.
-- ARGV: queue, key the message was sent for or '', most keys to take, '1' when
--   this take answers a message (and '0' when a run asks for more)
-- returns: OK | EMPTY | FULL | DRAINING, lease ms, renewal limit ms, then per
--   key: key, token, failures so far, ms it waited
local function answer_message(q)
  local outstanding = tonumber(redis.call('HGET', q.key.stats, 'outstanding') or '0')
  if outstanding > 0 then redis.call('HINCRBY', q.key.stats, 'outstanding', -1) end
end

-- Pairs of key and score: the named key if it still waits, then the oldest.
local function claim(q, named, most)
  local claimed = {}
  local since = named ~= '' and redis.call('ZSCORE', q.key.waiting, named)
  if since then
    redis.call('ZREM', q.key.waiting, named)
    claimed = {named, since}
  end
  local left = most - #claimed / 2
  if left > 0 then
    for _, value in ipairs(redis.call('ZPOPMIN', q.key.waiting, left)) do
      claimed[#claimed + 1] = value
    end
  end
  return claimed
end

local function start(q, key, since)
  local token = int(redis.call('INCR', P .. ':token'))
  redis.call('HSET', q.key.running, key, token)
  redis.call('HSET', q.key.starts, key, ms(MOMENT))
  redis.call('ZADD', q.key.leases, NOW + math.min(q.lease, q.renew_limit), key)
  local waited = math.max(0, MOMENT - tonumber(since))
  observe(q, 'queue', waited)
  return token, redis.call('HGET', q.key.failures, key) or '0', ms(waited)
end

local function refusal(q, waiting, free)
  if q.draining then return 'DRAINING' end
  if waiting == 0 then return 'EMPTY' end
  return free == 0 and 'FULL' or nil
end

local function run()
  local q = queue(arg(1))
  if arg(4) == '1' then answer_message(q) end
  local waiting, free = redis.call('ZCARD', q.key.waiting), room(q)
  local reply = {refusal(q, waiting, free) or 'OK', int(q.lease), int(q.renew_limit)}
  if reply[1] ~= 'OK' then return reply end
  local most = math.max(1, math.min(tonumber(arg(3)), claim_size(q, waiting)))
  local claimed = claim(q, arg(2), most)
  for i = 1, #claimed, 2 do
    local n = #reply
    reply[n + 1] = claimed[i]
    reply[n + 2], reply[n + 3], reply[n + 4] = start(q, claimed[i], claimed[i + 1])
  end
  redis.call('HSET', q.key.stats, 'last_take', int(NOW))
  ensure_wakeups(q)
  return reply
end
