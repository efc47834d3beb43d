-- Internal leases (design 0030): a hash of holder, token and end.
-- Invariant: a lease that is lost and acquired again has a new token.

-- Leases are acquired and renewed each second, so here it is noticed when the wall clock was set
-- back: the difference is added to NOW for good. Leases and keys that are taken in between end
-- early, which costs one more sync and nothing else.
local BACK = 1000 -- ms; a smaller difference is ignored
local function watch_clock()
  local server = WALL - tonumber(ARGV[4])
  local seen = whole(redis.call('HGET', P .. ':meta', 'clock'))
  if seen - server > BACK then
    NOW = NOW + seen - server
    redis.call('HSET', P .. ':meta', 'set_back', int(whole(META[2]) + seen - server))
  end
  if math.abs(server - seen) > BACK / 2 then
    redis.call('HSET', P .. ':meta', 'clock', int(server))
  end
end

-- Returns holder, token and end (ms); '' and 0 if there are none.
local function read_lease(name)
  local kept = redis.call('HMGET', P .. ':lease:' .. name, 'holder', 'token', 'expires')
  return kept[1] or '', kept[2] or '', tonumber(kept[3] or '0')
end

-- Reports whether a token is valid: its lease has not expired, and it is of this epoch.
local function is_valid(name, token, expires)
  return token ~= '' and NOW < expires and fence_holds(P .. ':lease:' .. name, 'token', token)
end

local function write_lease(name, holder, token, duration)
  redis.call('HSET', P .. ':lease:' .. name, 'holder', holder, 'token', token,
    'expires', int(NOW + duration))
end

-- Leases are shared by rendezvous: each of those who want one has a weight for it, which anybody can
-- compute, and the greatest one shall have it (design 0067).
local function weigh_holder(name, holder)
  return redis.sha1hex(name .. ' ' .. holder)
end

-- Returns who has asked for a lease within half of its duration and has a greater weight than the
-- holder, or nil.
local function read_asker(name, holder, duration)
  local asked = redis.call('HMGET', P .. ':lease:' .. name, 'asker', 'asked')
  local asker, since = asked[1] or '', NOW - whole(asked[2])
  local waits = asker ~= '' and since >= 0 and since <= duration / 2
  return waits and weigh_holder(name, asker) > weigh_holder(name, holder) and asker or nil
end

-- Notes who asks for a lease, unless somebody with a greater weight does.
local function ask_for_lease(name, holder, duration)
  if not read_asker(name, holder, duration) then
    redis.call('HSET', P .. ':lease:' .. name, 'asker', holder, 'asked', int(NOW))
  end
end
