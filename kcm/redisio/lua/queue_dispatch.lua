--! use lib_queue
--! use lib_queue_wakeups
-- Adds the keys of several events, and stores the resourceVersions up to which events have been
-- dispatched (design 0005).
-- A position only increases, unless it begins with "=": then the data went back.
-- ARGV: fence key, field, token; position hash; number of positions; pairs of
--   field and position; then groups as in queue_add
-- returns: OK, the number of keys that were not waiting already | FENCED
local GREATEST = 2 ^ 52 -- a greater position is not kcm's, see store_write.lua

local function store_position(hash, field, position)
  local exact = string.match(position, '^=(.*)$')
  local stored = not exact and tonumber(redis.call('HGET', hash, field) or nil)
  if stored and stored <= GREATEST and stored >= tonumber(position) then return end
  redis.call('HSET', hash, field, exact or position)
end

local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then return {'FENCED'} end
  local positions = tonumber(arg(5))
  local touched, added = add_all(6 + 2 * positions)
  for _, q in pairs(touched) do for_queue(ensure_wakeups, q) end
  raise_failure() -- the events of a queue that failed are dispatched again
  for i = 6, 4 + 2 * positions, 2 do store_position(arg(4), arg(i), arg(i + 1)) end
  return {'OK', int(added)}
end
