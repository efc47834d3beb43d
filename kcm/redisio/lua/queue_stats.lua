--! use lib_queue
-- Returns all that `kcm status` and metrics show of queues. Reads only.
-- ARGV: queue... (none: all)
-- returns: OK, then per queue whose keys have the right types: name, number of pairs, pairs of name and value
--   (counts; times and ages in ms)
local function ages(q)
  local total, longest = 0, 0
  for _, started in ipairs(redis.call('HVALS', q.key.starts)) do
    local age = math.max(0, MOMENT - tonumber(started))
    total, longest = total + age, math.max(longest, age)
  end
  return total, longest
end

local function describe(name)
  local q = queue(name)
  local oldest = redis.call('ZRANGE', q.key.waiting, 0, 0, 'WITHSCORES')[2]
  local unfinished, longest = ages(q)
  local pairs_ = redis.call('HGETALL', q.key.stats)
  local function field(name, value) pairs_[#pairs_ + 1], pairs_[#pairs_ + 2] = name, value end
  field('depth', int(redis.call('ZCARD', q.key.waiting)))
  field('running', int(redis.call('HLEN', q.key.running)))
  field('delayed', int(redis.call('ZCARD', q.key.delayed)))
  field('failing', int(redis.call('HLEN', q.key.failures)))
  field('oldest', ms(oldest and math.max(0, MOMENT - tonumber(oldest)) or 0))
  field('unfinished', ms(unfinished))
  field('longest', ms(longest))
  field('cap', int(q.cap))
  field('draining', q.draining or '0')
  field('now', int(NOW))
  return pairs_
end

local function run()
  local names, reply = every_queue(), {'OK'}
  if ARGC > 0 then
    names = {}
    for i = 1, ARGC do names[i] = arg(i) end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local described = for_queue(describe, name)
    if described then
      reply[#reply + 1], reply[#reply + 2] = name, int(#described / 2)
      for _, value in ipairs(described) do reply[#reply + 1] = value end
    end
  end
  return reply
end
