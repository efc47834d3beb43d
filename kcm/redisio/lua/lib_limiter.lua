-- Token buckets by name, from which passes and single writes take tokens. A bucket that does not
-- exist gives no tokens, nor does one with a rate of 0.

local function limiter_key(name) return P .. ':limiter:' .. name end

-- Returns the rate per second, the burst and the tokens now; nil if there is no such bucket.
local function limiter_read(name)
  local kept = redis.call('HMGET', limiter_key(name), 'qps', 'burst', 'tokens', 'at')
  if not kept[1] then return nil end
  local qps, burst = tonumber(kept[1]), tonumber(kept[2])
  local passed = math.max(0, MOMENT - tonumber(kept[4])) / 1000
  return qps, burst, math.min(burst, tonumber(kept[3]) + passed * qps)
end

local function limiter_write(name, qps, burst, tokens)
  redis.call('HSET', limiter_key(name), 'qps', qps, 'burst', burst,
    'tokens', string.format('%.6f', tokens), 'at', string.format('%.3f', MOMENT))
end

-- Takes a token, and reports whether there was one. A sum of fractions may be slightly below 1.
local function limiter_take(name)
  local qps, burst, tokens = limiter_read(name)
  if not qps or qps <= 0 or tokens < 0.999999 then return false end
  limiter_write(name, qps, burst, math.max(0, tokens - 1))
  return true
end
