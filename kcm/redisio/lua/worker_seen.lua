-- Records the heartbeat of a process; on request, removes processes without heartbeats.
-- ARGV: key; identity; JSON object without its closing brace; ms without a heartbeat
--       after which others are removed, '0' for never
-- returns: OK, then the removed identities
local function forget_silent(key, limit)
  local forgotten = {}
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local seen = tonumber(string.match(all[i + 1], '"last_seen":(%d+)}$') or '0')
    if math.abs(NOW - seen) > limit then forgotten[#forgotten + 1] = all[i] end
  end
  for _, identity in ipairs(forgotten) do redis.call('HDEL', key, identity) end
  return forgotten
end

local function run()
  redis.call('HSET', arg(1), arg(2), arg(3) .. ',"last_seen":' .. int(NOW) .. '}')
  local limit = tonumber(arg(4))
  local reply = {'OK'}
  if limit > 0 then
    for _, identity in ipairs(forget_silent(arg(1), limit)) do reply[#reply + 1] = identity end
  end
  return reply
end
