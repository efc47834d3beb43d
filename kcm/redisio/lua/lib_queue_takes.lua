-- Taking keys: each gets a fencing token, a lease and a start time. Keys that are taken in one
-- call are one run, see `room`. A run costs as many commands, however many keys it takes.

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

-- Records the run of claimed keys, of which there are some, and appends to the reply, per key: key,
-- token, failures so far, ms it waited.
local function start(q, claimed, reply)
  local keys, running, starts, leases = {}, {}, {}, {}
  local began, ends = ms(MOMENT), NOW + math.min(q.lease, q.renew_limit)
  local number = #claimed / 2
  local before = redis.call('INCRBY', P .. ':token', number) - number
  for n = 1, number do
    local key = claimed[2 * n - 1]
    keys[n] = key
    running[2 * n - 1], running[2 * n] = key, int(before + n)
    starts[2 * n - 1], starts[2 * n] = key, began
    leases[2 * n - 1], leases[2 * n] = ends, key
  end
  redis.call('HSET', q.key.running, unpack(running))
  redis.call('HSET', q.key.starts, unpack(starts))
  redis.call('ZADD', q.key.leases, unpack(leases))
  local failures = redis.call('HMGET', q.key.failures, unpack(keys))
  for n = 1, number do
    local waited, at = math.max(0, MOMENT - tonumber(claimed[2 * n])), #reply
    observe(q, 'queue', waited)
    reply[at + 1], reply[at + 2] = keys[n], running[2 * n]
    reply[at + 3], reply[at + 4] = failures[n] or '0', ms(waited)
  end
end

-- Takes up to `most` keys, `named` first, and appends to the reply: renewal limit ms, then what
-- `start` appends. Returns OK, or why it took none.
local function take_keys(q, named, most, reply)
  if q.draining then return 'DRAINING' end
  local waiting = redis.call('ZCARD', q.key.waiting)
  if waiting == 0 then return 'EMPTY' end
  if room(q) == 0 then return 'FULL' end
  reply[#reply + 1] = int(q.renew_limit)
  start(q, claim(q, named, math.max(1, math.min(most, claim_size(q, waiting)))), reply)
  redis.call('HSET', q.key.stats, 'last_take', int(NOW))
  return 'OK'
end
