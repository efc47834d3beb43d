-- Internal leases (DESIGN D18): a hash of holder, token and end.
-- Invariant: a token names one uninterrupted term of one holder.

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
