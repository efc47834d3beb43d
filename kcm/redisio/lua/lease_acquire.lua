--! use lib_lease
-- Acquires leases that are free or have expired, and renews those of which the caller knows the
-- token. A holder that does not know the token (it restarted, or took the lease for lost) gets a
-- new one, and its writes with the old one are refused.
-- A caller with a greater weight than the holder of a lease asks for it, if it shares leases; the
-- holder's next renewal gives it to who has asked (design 0067).
-- ARGV: holder, then for each lease: name, duration ms, known token or '', '1' if it is shared or ''
-- returns: OK, then per lease: HELD | TAKEN | ASKED | GIVEN, token (HELD), holder
local function grant(name, holder, duration)
  local token = int(redis.call('INCR', P .. ':token'))
  write_lease(name, holder, token, duration)
  return token
end

local function ask(holder, current, name, duration, shared)
  local asks = shared and weigh_holder(name, holder) > weigh_holder(name, current)
  if asks then ask_for_lease(name, holder, duration) end
  return asks and 'ASKED' or 'TAKEN', '', current
end

local function acquire(holder, name, duration, known, shared)
  local current, token, expires = read_lease(name)
  if current ~= '' and current ~= holder and NOW < expires then
    return ask(holder, current, name, duration, shared)
  end
  if current ~= holder or token ~= known or not is_valid(name, token, expires) then
    return 'HELD', grant(name, holder, duration), holder
  end
  local asker = shared and read_asker(name, holder, duration)
  if asker then
    grant(name, asker, duration)
    return 'GIVEN', '', asker
  end
  write_lease(name, holder, token, duration)
  return 'HELD', token, holder
end

local function run()
  watch_clock()
  local reply = {'OK'}
  for i = 2, ARGC, 4 do
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] =
      acquire(arg(1), arg(i), tonumber(arg(i + 1)), arg(i + 2), arg(i + 3) == '1')
  end
  return reply
end
