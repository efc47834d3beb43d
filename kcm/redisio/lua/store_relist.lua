-- Makes every reader of some kinds list them again, and every sync wait until its caches
-- did: for lists that may have come short, and for records that were lost. No list that was
-- begun before has the resourceVersion that is drawn here.
-- ARGV: 'always', or 'lost': only if the record of last writes was lost; resource...
-- returns: OK, the resourceVersion from which on readers go on; '0' when nothing was lost
local function run()
  local last = P .. ':last_rv'
  local is_lost = not redis.call('HGET', last, '*')
  if arg(1) == 'lost' and not is_lost then return {'OK', '0'} end
  local rv = int(redis.call('INCR', P .. ':rv'))
  for n = 2, ARGC do
    mark_trimmed(arg(n), rv)
    redis.call('HSET', last, arg(n), rv)
  end
  if arg(1) == 'lost' then redis.call('HSET', last, '*', rv) end
  return {'OK', rv}
end
