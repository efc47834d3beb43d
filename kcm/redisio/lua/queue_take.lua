--! use lib_queue
--! use lib_queue_wakeups
--! use lib_queue_takes
-- Takes waiting keys for a run that begins.
-- ARGV: queue, key the message was sent for or '', most keys to take, '1' when
--   this take answers a message
-- returns: OK | EMPTY | FULL | DRAINING, and after OK what `take_keys` appends
local function answer_message(q)
  local outstanding = tonumber(redis.call('HGET', q.key.stats, 'outstanding') or '0')
  if outstanding > 0 then redis.call('HINCRBY', q.key.stats, 'outstanding', -1) end
end

local function run()
  local q = queue(arg(1))
  if arg(4) == '1' then answer_message(q) end
  local reply = {'OK'}
  reply[1] = take_keys(q, arg(2), tonumber(arg(3)), reply)
  if reply[1] == 'OK' then ensure_wakeups(q) end
  return reply
end
