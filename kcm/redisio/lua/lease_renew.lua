--! use lib_lease
-- Renews leases. One that has expired is lost, even if no other holder has acquired it since.
-- ARGV: triples of lease name, duration ms, token
-- returns: OK, then per lease: OK | LOST
local function run()
  watch_clock()
  local reply = {'OK'}
  for i = 1, ARGC, 3 do
    local name, token = arg(i), arg(i + 2)
    local holder, current, expires = read_lease(name)
    local lasts = token == current and is_valid(name, token, expires)
    if lasts then write_lease(name, holder, token, tonumber(arg(i + 1))) end
    reply[#reply + 1] = lasts and 'OK' or 'LOST'
  end
  return reply
end
