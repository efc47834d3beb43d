--! use lib_limiter
-- Returns the rates and tokens of buckets. Reads only.
-- ARGV: name...
-- returns: OK, then per bucket: tokens per second, burst, tokens ('' three times: no such bucket)
local function run()
  local reply = {'OK'}
  for i = 1, ARGC do
    local qps, burst, tokens = limiter_read(arg(i))
    local n = #reply
    reply[n + 1] = qps and tostring(qps) or ''
    reply[n + 2] = qps and tostring(burst) or ''
    reply[n + 3] = qps and string.format('%.3f', tokens) or ''
  end
  return reply
end
