--! use lib_limiter
-- Sets the rates of token buckets. A bucket whose rate is unchanged keeps its tokens. One that
-- was empty, or had a rate of 0, is empty at its new rate as well; otherwise it starts full.
-- Source: SwapLimiter in pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go.
-- ARGV: fence key, field, token; then per bucket: name, tokens per second ('' removes it), burst
-- returns: OK | FENCED
local function set(name, qps, burst)
  local old, old_burst, tokens = limiter_read(name)
  if old == qps and old_burst == burst then return end
  local drained = old and (old <= 0 or tokens < 1)
  limiter_write(name, qps, burst, drained and 0 or burst)
end

local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then return {'FENCED'} end
  for i = 4, ARGC, 3 do
    if arg(i + 1) == '' then
      redis.call('DEL', limiter_key(arg(i)))
    else
      set(arg(i), tonumber(arg(i + 1)), tonumber(arg(i + 2)))
    end
  end
  return {'OK'}
end
