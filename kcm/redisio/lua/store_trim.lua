-- Trims the watch logs and records how far, so that a reader notices that it lost entries (design
-- 0020). Each call records the time and the counter, and removes from each log the entries that
-- are older than the retention or beyond the length.
-- ARGV: retention ms, most entries per log, resource...
-- returns: OK, then per resource the number of entries removed
local function older_than(age)
  local marks = P .. ':trim_marks'
  redis.call('ZADD', marks, NOW, redis.call('GET', P .. ':rv') or '0')
  local found = redis.call('ZREVRANGEBYSCORE', marks, NOW - age, '-inf', 'LIMIT', 0, 1)
  redis.call('ZREMRANGEBYSCORE', marks, '-inf', '(' .. int(NOW - age))
  if found[1] then redis.call('ZADD', marks, NOW - age, found[1]) end
  return tonumber(found[1] or '0')
end

local function first_id(stream)
  local entry = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  return entry and tonumber(string.match(entry[1], '^%d+'))
end

local function trim(r, below, most)
  local stream = P .. ':watch:' .. r
  local before = redis.call('XLEN', stream)
  if before == 0 then return 0 end
  local first = first_id(stream)
  redis.call('XTRIM', stream, 'MINID', int(below + 1))
  redis.call('XTRIM', stream, 'MAXLEN', int(most))
  local removed = before - redis.call('XLEN', stream)
  if removed > 0 then
    local left = first_id(stream)
    local upto = left and left - 1 or tonumber(redis.call('HGET', P .. ':last_rv', r) or first)
    mark_trimmed(r, int(upto))
  end
  return removed
end

local function run()
  local below = older_than(tonumber(arg(1)))
  local reply = {'OK'}
  for n = 3, ARGC do
    reply[n - 1] = int(trim(arg(n), below, tonumber(arg(2))))
  end
  return reply
end
