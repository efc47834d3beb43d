-- Work queues: one queue's record, adding, delaying, rate limits, counters.
-- Invariants of every script: a key is in `waiting` at most once; a key in `running` is not in
-- `waiting` (an add puts it into `again` instead); `running`, `leases` and `starts` have the same
-- members.

-- Formats milliseconds with fractions, so that keys that are added within one millisecond keep
-- their order, and short syncs are counted in the right histogram bucket.
local function ms(n) return string.format('%.3f', n) end

local CONFIG = {'task', 'list', 'routing_key', 'cap', 'claim', 'threshold', 'lease',
  'renew_limit', 'base_delay', 'max_delay', 'qps', 'burst', 'stall', 'draining'}
local PARTS = {'config', 'waiting', 'running', 'leases', 'starts', 'again', 'delayed',
  'failures', 'bucket', 'stats'}
-- The settings before the first queue_configure: keys wait, and no messages are sent.
local DEFAULTS = {cap = 0, claim = 8, threshold = 16, lease = 4000, renew_limit = 30000,
  base_delay = 5, max_delay = 1000000, qps = 10, burst = 100, stall = 2000}

local loaded = {}

-- Returns the queue's key names, its configuration and the counts of this call.
local function queue(name)
  if loaded[name] then return loaded[name] end
  local q = {name = name, counts = {}, fresh = {}, key = {}}
  for _, part in ipairs(PARTS) do q.key[part] = P .. ':queue:' .. name .. ':' .. part end
  local values = redis.call('HMGET', q.key.config, unpack(CONFIG))
  for i, field in ipairs(CONFIG) do
    local value = values[i] or nil
    q[field] = DEFAULTS[field] and (tonumber(value) or DEFAULTS[field]) or value
  end
  loaded[name] = q
  return q
end

local function every_queue()
  return redis.call('SMEMBERS', P .. ':queues')
end

-- Calls a function about one queue, and returns what it returns; nothing if it fails, as it does
-- when another program has put another type in the place of one of the queue's keys. Such a queue
-- costs no other one anything. `raise_failure` raises the first error at the end of the script.
local failure
local function for_queue(act, ...)
  local fine, first, second = pcall(act, ...)
  if fine then return first, second end
  failure = failure or first
end

local function raise_failure()
  if failure then error(failure, 0) end
end

-- The names of the queues that have keys in one of these parts. Most have none most of the
-- time, and are passed over without a look at their records.
local function queues_with(...)
  local names = {}
  for _, name in ipairs(every_queue()) do
    local keys = {}
    for i, part in ipairs({...}) do keys[i] = P .. ':queue:' .. name .. ':' .. part end
    if redis.call('EXISTS', unpack(keys)) > 0 then names[#names + 1] = name end
  end
  return names
end

local function count(q, field, by)
  if by ~= 0 then q.counts[field] = (q.counts[field] or 0) + (by or 1) end
end

-- Counts one observation in an upstream histogram: buckets 1e-8 s to 10 s, factor 10.
local function observe(q, histogram, milliseconds)
  local seconds = math.max(0, milliseconds) / 1000
  local bucket, bound = 0, 1e-8
  while bucket < 10 and seconds > bound * 1.000001 do
    bucket, bound = bucket + 1, bound * 10
  end
  count(q, histogram .. ':' .. bucket)
  count(q, histogram .. ':us', math.floor(seconds * 1e6 + 0.5))
end

local function write_counts(q)
  for field, by in pairs(q.counts) do
    redis.call('HINCRBY', q.key.stats, field, int(by))
  end
  q.counts = {}
end

-- Makes the key wait, with the time `since`; returns 1 when it did not wait before.
local function let_wait(q, key, since)
  local added = redis.call('ZADD', q.key.waiting, 'NX', since, key)
  if added == 1 then q.fresh[#q.fresh + 1] = key end
  return added
end

-- Returns the time of a key that this call adds: a microsecond after that of the one before it,
-- since keys with the same score are sorted by name.
local came = -1
local function arrival()
  came = came + 1
  return ms(MOMENT + came / 1000)
end

-- client-go's Add: returns 1 when the key did not wait, 0 when it did.
local function add(q, key)
  local added
  if redis.call('HEXISTS', q.key.running, key) == 1 then
    added = redis.call('ZADD', q.key.again, 'NX', arrival(), key)
  else
    added = let_wait(q, key, arrival())
  end
  count(q, 'adds', added)
  return added
end

local function wake_pump()
  redis.call('LPUSH', P .. ':pump:wake', '1')
  redis.call('LTRIM', P .. ':pump:wake', 0, 0)
end

-- client-go's AddAfter: counts a retry, keeps the earliest due time of a key.
local function add_after(q, key, delay)
  count(q, 'retries')
  if delay <= 0 then return add(q, key) end
  local due = MOMENT + delay
  local earliest = redis.call('ZRANGE', q.key.delayed, 0, 0, 'WITHSCORES')[2]
  local new = redis.call('ZADD', q.key.delayed, 'LT', ms(due), key)
  if not earliest or due < tonumber(earliest) then wake_pump() end
  return new
end

-- Takes a token from the bucket of all keys, in advance if there is none; returns the ms until
-- there is one.
local function bucket_delay(q)
  local kept = redis.call('HMGET', q.key.bucket, 'tokens', 'at')
  local at = math.min(tonumber(kept[2]) or MOMENT, MOMENT)
  local tokens = (tonumber(kept[1]) or q.burst) + (MOMENT - at) / 1000 * q.qps
  tokens = math.min(q.burst, tokens) - 1
  redis.call('HSET', q.key.bucket, 'tokens', string.format('%.6f', tokens), 'at', ms(MOMENT))
  return math.max(0, -tokens / q.qps * 1000)
end

-- client-go's default limiter: returns the larger one of the key's own exponential delay and the
-- bucket's; both advance every time.
local function limited_delay(q, key)
  local failures = redis.call('HINCRBY', q.key.failures, key, 1)
  local own = math.min(q.max_delay, q.base_delay * 2 ^ (failures - 1))
  return math.max(own, bucket_delay(q))
end

-- Makes the additions of the group that begins at an argument. Returns the queue and their number.
local function add_group(i)
  local q, delay, keys, added = queue(arg(i)), arg(i + 1), tonumber(arg(i + 2)), 0
  for k = i + 3, i + 2 + keys do
    local key = arg(k)
    if delay == '0' then
      added = added + add(q, key)
    elseif delay == 'limited' then
      added = added + add_after(q, key, limited_delay(q, key))
    else
      added = added + add_after(q, key, tonumber(delay))
    end
  end
  return q, added
end

-- Makes the additions of one call, which are the arguments from `first` on: groups of queue, delay
-- (milliseconds, or 'limited'), number of keys, keys.
local function add_all(first)
  local touched, added, i = {}, 0, first
  while i <= ARGC do
    local q, new = for_queue(add_group, i)
    if q then touched[q.name], added = q, added + new end
    i = i + 3 + tonumber(arg(i + 2))
  end
  return touched, added
end

-- Removes the running records of keys, of which there are some; the caller decides what happens to
-- the keys.
local function end_runs(q, keys)
  redis.call('HDEL', q.key.running, unpack(keys))
  redis.call('ZREM', q.key.leases, unpack(keys))
  redis.call('HDEL', q.key.starts, unpack(keys))
end

-- Returns when each of some keys was added while it was in flight; false for those that were not.
local function added_again(q, keys)
  return redis.call('ZMSCORE', q.key.again, unpack(keys))
end

-- Makes a key wait that was added while it was in flight, with the time of `added_again`.
local function run_again(q, key, since)
  if not since then return false end
  redis.call('ZREM', q.key.again, key)
  let_wait(q, key, since)
  return true
end
