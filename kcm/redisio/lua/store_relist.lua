-- Makes all readers of kinds whose watch log was lost list them again, and every sync wait until
-- its caches have. Lists that were begun before do not have the resourceVersion that is drawn
-- here.
-- ARGV: resource...
-- returns: OK
local function run()
  for n = 1, ARGC do
    local rv = int(redis.call('INCR', P .. ':rv'))
    mark_trimmed(arg(n), rv)
    redis.call('HSET', P .. ':last_rv', arg(n), rv)
  end
  return {'OK'}
end
