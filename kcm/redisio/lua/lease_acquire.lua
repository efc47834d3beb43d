--! use lib_lease
-- Acquires leases that are free or have expired, and renews those of which the caller knows the
-- token. A holder that does not know the token (it restarted, or took the lease for lost) gets a
-- new one, and its writes with the old one are refused.
-- ARGV: holder, then triples of lease name, duration ms, known token or ''
-- returns: OK, then per lease: HELD | TAKEN, token (HELD), holder
local function acquire(holder, name, duration, known)
  local current, token, expires = read_lease(name)
  if current ~= '' and current ~= holder and NOW < expires then return 'TAKEN', '', current end
  if current ~= holder or token ~= known or not is_valid(name, token, expires) then
    token = int(redis.call('INCR', P .. ':token'))
  end
  write_lease(name, holder, token, duration)
  return 'HELD', token, holder
end

local function run()
  watch_clock()
  local reply = {'OK'}
  for i = 2, ARGC, 3 do
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] =
      acquire(arg(1), arg(i), tonumber(arg(i + 1)), arg(i + 2))
  end
  return reply
end
