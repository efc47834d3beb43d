-- Returns the changes that a controller still expects for a key; none once they have expired.
-- ARGV: expectations key
-- returns: OK, entries...
local function run()
  local expires = tonumber(redis.call('HGET', arg(1), '.expires') or '0')
  local reply = {'OK'}
  if expires <= NOW then return reply end
  for _, entry in ipairs(redis.call('HKEYS', arg(1))) do
    if entry ~= '.expires' then reply[#reply + 1] = entry end
  end
  return reply
end
