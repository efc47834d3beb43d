-- The resourceVersion of the last write of each resource (design 0011).
-- ARGV: resource...
-- returns: OK, then one number per resource ('0' when never written)
local function run()
  local reply = {'OK'}
  for i = 1, ARGC do
    reply[i + 1] = redis.call('HGET', P .. ':last_rv', arg(i)) or '0'
  end
  return reply
end
