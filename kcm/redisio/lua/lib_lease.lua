-- Internal leases (design 0030): a hash of holder, token and end.
-- Invariant: a token names one uninterrupted term of one holder.

-- Leases are taken and renewed each second, so here it shows when the wall clock was set
-- back: what is noticed is added to NOW for good. Between the step and this, what is taken
-- ends early, which costs a run and nothing else.
local BACK = 1000 -- ms; less is waited out
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

-- holder, token, end (ms); '' and 0 where there is none.
local function read_lease(name)
  local kept = redis.call('HMGET', P .. ':lease:' .. name, 'holder', 'token', 'expires')
  return kept[1] or '', kept[2] or '', tonumber(kept[3] or '0')
end

-- A token counts while its lease runs and its epoch lasts.
local function term_lasts(name, token, expires)
  return token ~= '' and NOW < expires and fence_holds(P .. ':lease:' .. name, 'token', token)
end

local function write_lease(name, holder, token, duration)
  redis.call('HSET', P .. ':lease:' .. name, 'holder', holder, 'token', token,
    'expires', int(NOW + duration))
end
