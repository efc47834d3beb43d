--! use lib_queue
--! use lib_queue_wakeups
-- Finds keys whose worker died (lease over) and keys whose message was lost
-- (waiting for the stall time, with room under the cap), in all queues.
-- ARGV: most keys to reap per queue
-- returns: OK, then per queue that needed something: queue, keys reaped, messages
--   found lost
local SCANNED = 500 -- messages looked at; any beyond count as still on their way

local function reap(q, most)
  local expired = redis.call('ZRANGE', q.key.leases, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, most)
  for _, key in ipairs(expired) do
    end_run(q, key)
    if not run_again(q, key) then let_wait(q, key, ms(MOMENT)) end
  end
  count(q, 'reaped', #expired)
  return #expired
end

-- Judged by the oldest key, not by the last take: where others are added and
-- taken all the time, one whose message was lost would wait for ever. Under
-- backlog this repeats, at most once per stall time, what workers have prefetched.
local function stalled(q)
  local oldest = redis.call('ZRANGE', q.key.waiting, 0, 0, 'WITHSCORES')[2]
  if not oldest or not q.task or q.draining or room(q) == 0 then return false end
  local resent = redis.call('HGET', q.key.stats, 'last_resend') or '0'
  return MOMENT - math.max(tonumber(oldest), tonumber(resent)) >= q.stall
end

-- Messages for this queue that still lie in the list: several queues share one,
-- and a queue whose workers are merely down must not be flooded.
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

local function run()
  local reply = {'OK'}
  for _, name in ipairs(queues_with('leases', 'waiting')) do
    local q = queue(name)
    local reaped, lost = reap(q, tonumber(arg(1))), forget_lost_messages(q)
    if reaped + lost > 0 then
      local n = #reply
      reply[n + 1], reply[n + 2], reply[n + 3] = name, int(reaped), int(lost)
    end
    ensure_wakeups(q)
  end
  return reply
end
