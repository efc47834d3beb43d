-- Taking keys: each gets a fencing token, a lease and a start time. Keys that are taken in one
-- call are one run, see `room`.

-- Removes keys from the waiting ones: the named key if it still waits, then the oldest. Returns
-- pairs of key and score.
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

-- Takes up to `most` keys, `named` first, and appends to the reply: renewal limit ms, then per
-- key: key, token, failures so far, ms it waited. Returns OK, or why it took none.
local function take_keys(q, named, most, reply)
  if q.draining then return 'DRAINING' end
  local waiting = redis.call('ZCARD', q.key.waiting)
  if waiting == 0 then return 'EMPTY' end
  if room(q) == 0 then return 'FULL' end
  local n = #reply + 1
  reply[n] = int(q.renew_limit)
  local claimed = claim(q, named, math.max(1, math.min(most, claim_size(q, waiting))))
  for i = 1, #claimed, 2 do
    n = #reply
    reply[n + 1] = claimed[i]
    reply[n + 2], reply[n + 3], reply[n + 4] = start(q, claimed[i], claimed[i + 1])
  end
  redis.call('HSET', q.key.stats, 'last_take', int(NOW))
  return 'OK'
end
