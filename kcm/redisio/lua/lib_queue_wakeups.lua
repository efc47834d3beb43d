-- Wake-ups: Celery messages that are pushed to the broker's list.
-- `outstanding` (in stats) is the number of those that no take has answered yet. It may be too
-- low or too high, since messages are lost and doubled: the former causes takes without keys, the
-- latter is corrected by the reaper.

local BODY_END = '], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]'

-- Returns a new id: the counter may repeat after a failover, but the run id does not.
local function message_id(q)
  local number = redis.call('HINCRBY', q.key.stats, 'messages', 1)
  local hex = redis.sha1hex(q.key.stats .. ' ' .. number .. ' ' .. ARGV[2] .. ' ' .. ms(MOMENT))
  return hex:sub(1, 8) .. '-' .. hex:sub(9, 12) .. '-5' .. hex:sub(14, 16) .. '-8' ..
    hex:sub(18, 20) .. '-' .. hex:sub(21, 32)
end

-- Returns a task message of protocol 2, as kombu 5.7 and Celery 5.7 write it. It is built from
-- text, since cjson does not encode empty objects and null as they do.
local function envelope(q, key, more)
  local id = message_id(q)
  local shown = more > 0 and key .. ' +' .. int(more) or key
  return '{"body": ' .. cjson.encode('[[' .. cjson.encode(key) .. BODY_END) ..
    ', "content-encoding": "utf-8", "content-type": "application/json", "headers": {' ..
    '"lang": "py", "task": ' .. q.task_json .. ', "id": "' .. id .. '", "shadow": null, ' ..
    '"eta": null, "expires": null, "group": null, "group_index": null, "retries": 0, ' ..
    '"timelimit": [null, null], "root_id": "' .. id .. '", "parent_id": null, ' ..
    '"argsrepr": ' .. cjson.encode("('" .. shown .. "',)") .. ', "kwargsrepr": "{}", ' ..
    '"origin": "kcm-queue", "ignore_result": true, "replaced_task_nesting": 0, ' ..
    '"stamped_headers": null, "stamps": {}}, "properties": {"correlation_id": "' .. id ..
    '", "reply_to": "", "delivery_mode": 2, "delivery_info": {"exchange": "", "routing_key": ' ..
    q.routing_json .. '}, "priority": 0, "body_encoding": "utf-8", "delivery_tag": "' .. id .. '"}}'
end

-- Returns the number of runs that the cap still allows. The keys of one take are synced one after
-- the other, so those that started in the same moment are one run.
local function room(q)
  if q.cap == 0 then return math.huge end
  local runs, seen = 0, {}
  for _, moment in ipairs(redis.call('HVALS', q.key.starts)) do
    if not seen[moment] then runs, seen[moment] = runs + 1, true end
  end
  return math.max(0, q.cap - runs)
end

-- Returns the number of keys that one run takes: one, or several when many wait.
local function claim_size(q, waiting)
  return waiting <= q.threshold and 1 or q.claim
end

-- Returns the number of runs that take several keys, and that of all runs.
local function runs_needed(q, waiting, free)
  if not q.task or q.draining then return 0, 0 end
  local large = math.ceil(math.max(0, waiting - q.threshold) / q.claim)
  return large, math.min(large + math.min(waiting, q.threshold), free)
end

-- Returns the key for the message of run number i (from 0): one that this call added, else the
-- one that will probably be the oldest for that run.
local function key_for_run(q, i, large, size, number)
  if large == 0 and q.fresh[number] then return q.fresh[number] end
  local rank = i < large and i * size or large * size + i - large
  return redis.call('ZRANGE', q.key.waiting, rank, rank)[1]
    or redis.call('ZRANGE', q.key.waiting, -1, -1)[1]
end

local function push(q, from, to, large, size)
  q.task_json, q.routing_json = cjson.encode(q.task), cjson.encode(q.routing_key)
  for i = from, to - 1 do
    local key = key_for_run(q, i, large, size, i - from + 1)
    redis.call('LPUSH', q.list, envelope(q, key, i < large and size - 1 or 0))
  end
end

-- Sends messages until there are as many as runs are needed, and writes the counts. Every script
-- that changes which keys wait or are in flight ends with it.
local function ensure_wakeups(q)
  local waiting = redis.call('ZCARD', q.key.waiting)
  if waiting > 0 then
    local free = room(q)
    local large, needed = runs_needed(q, waiting, free)
    local outstanding = tonumber(redis.call('HGET', q.key.stats, 'outstanding') or '0')
    if outstanding < needed then
      push(q, outstanding, needed, large, claim_size(q, waiting))
      redis.call('HSET', q.key.stats, 'outstanding', needed)
    end
  end
  write_counts(q)
end
