--! use lib_lease
-- Releases leases, so that the next holder need not wait until they expire.
-- ARGV: pairs of lease name and token
-- returns: OK, then per lease: OK | LOST
local function run()
  local reply = {'OK'}
  for i = 1, ARGC, 2 do
    local _, token = read_lease(arg(i))
    local held = token ~= '' and token == arg(i + 1)
    if held then redis.call('DEL', P .. ':lease:' .. arg(i)) end
    reply[#reply + 1] = held and 'OK' or 'LOST'
  end
  return reply
end
