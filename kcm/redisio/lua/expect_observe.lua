-- Takes entries off the expectations of a key. An entry stands there once, so an
-- observation that comes twice lowers nothing twice. Not fenced: whoever sees a
-- change may tell.
-- ARGV: expectations key, entries...
-- returns: OK, how many entries were expected
local function run()
  local seen = 0
  for n = 2, ARGC do seen = seen + redis.call('HDEL', arg(1), arg(n)) end
  return {'OK', int(seen)}
end
