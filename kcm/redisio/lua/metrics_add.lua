-- Adds to counters of a hash.
-- ARGV: key; then field, increment (whole)...
-- returns: OK
local function run()
  for i = 2, ARGC, 2 do
    redis.call('HINCRBY', arg(1), arg(i), arg(i + 1))
  end
  return {'OK'}
end
