--! use lib_queue
--! use lib_queue_wakeups
-- Frees keys whose worker died (the lease has expired), and repeats lost messages (a key has
-- waited for the stall time, with room under the cap), in all queues.
-- ARGV: most keys to reap per queue
-- returns: OK, then per queue that had any: queue, number of keys reaped, number of lost messages
local SCANNED = 500 -- the most messages to read; any beyond count as present

local function reap(q, most)
  local expired = redis.call('ZRANGE', q.key.leases, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, most)
  if #expired == 0 then return 0 end
  local since = added_again(q, expired)
  end_runs(q, expired)
  for n, key in ipairs(expired) do
    if not run_again(q, key, since[n]) then let_wait(q, key, ms(MOMENT)) end
  end
  count(q, 'reaped', #expired)
  return #expired
end

-- Reports whether a message is probably lost, by the age of the oldest key. The time of the last
-- take would not do: while other keys are added and taken all the time, a key whose message was
-- lost would wait forever. Under backlog, messages that workers have prefetched are repeated, at
-- most once per stall time.
local function stalled(q)
  local oldest = redis.call('ZRANGE', q.key.waiting, 0, 0, 'WITHSCORES')[2]
  if not oldest or not q.task or q.draining or room(q) == 0 then return false end
  local resent = redis.call('HGET', q.key.stats, 'last_resend') or '0'
  return MOMENT - math.max(tonumber(oldest), tonumber(resent)) >= q.stall
end

-- Returns the number of messages for this queue that are still in the list, which several queues
-- share. A queue whose workers are only down must not get more and more of them.
local function still_in_list(q)
  local marker, found = '"task": ' .. cjson.encode(q.task) .. ',', 0
  for _, message in ipairs(redis.call('LRANGE', q.list, -SCANNED, -1)) do
    if message:find(marker, 1, true) then found = found + 1 end
  end
  return found + math.max(0, redis.call('LLEN', q.list) - SCANNED)
end

local function forget_lost_messages(q)
  if not stalled(q) then return 0 end
  local outstanding = tonumber(redis.call('HGET', q.key.stats, 'outstanding') or '0')
  local lost = math.max(0, outstanding - still_in_list(q))
  redis.call('HSET', q.key.stats, 'outstanding', outstanding - lost, 'last_resend', int(NOW))
  count(q, 'lost_messages', lost)
  return lost
end

local function repair(name)
  local q = queue(name)
  local reaped, lost = reap(q, tonumber(arg(1))), forget_lost_messages(q)
  ensure_wakeups(q)
  return reaped, lost
end

local function run()
  local reply = {'OK'}
  for _, name in ipairs(queues_with('leases', 'waiting')) do
    local reaped, lost = for_queue(repair, name)
    if reaped and reaped + lost > 0 then
      local n = #reply
      reply[n + 1], reply[n + 2], reply[n + 3] = name, int(reaped), int(lost)
    end
  end
  raise_failure()
  return reply
end
