--! use lib_queue
--! use lib_queue_wakeups
--! use lib_queue_takes
-- Adds the keys of several events, and stores the resourceVersions up to which events have been
-- dispatched (design 0005). Takes keys for runs that wait for them (design 0084).
-- A position only increases, unless it begins with "=": then the data went back.
-- ARGV: fence key, field, token; position hash; number of positions; pairs of
--   field and position; number of waiting runs; the queue of each; then groups as in queue_add
-- returns: OK, the number of keys that were not waiting already, then per waiting run: the number
--   of parts that follow, and what `take_keys` appends | FENCED
local GREATEST = 2 ^ 52 -- a greater position is not kcm's, see store_write.lua

local function store_position(hash, field, position)
  local exact = string.match(position, '^=(.*)$')
  local stored = not exact and tonumber(redis.call('HGET', hash, field) or nil)
  if stored and stored <= GREATEST and stored >= tonumber(position) then return end
  redis.call('HSET', hash, field, exact or position)
end

-- Takes keys for the run that waits for a queue's keys, and appends them to the reply. A script
-- that fails has no reply, so it takes none.
local function take_for_run(q, reply)
  local taken = {}
  if q and not failure then
    for_queue(take_keys, q, '', math.huge, taken)
    q.fresh = {} -- the messages name keys that still wait
  end
  reply[#reply + 1] = int(#taken)
  for _, part in ipairs(taken) do reply[#reply + 1] = part end
end

local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then return {'FENCED'} end
  local runs = 6 + 2 * tonumber(arg(5)) -- where the waiting runs begin
  local groups = runs + 1 + tonumber(arg(runs))
  local touched, added = add_all(groups)
  local reply = {'OK', int(added)}
  for i = runs + 1, groups - 1 do take_for_run(touched[arg(i)], reply) end
  for _, q in pairs(touched) do for_queue(ensure_wakeups, q) end
  raise_failure() -- the events of a queue that failed are dispatched again
  for i = 6, runs - 2, 2 do store_position(arg(4), arg(i), arg(i + 1)) end
  return reply
end
