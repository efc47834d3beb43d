-- Removes entries from the expectations of a key. Each entry is there once, so an observation
-- that is repeated has no further effect. Not fenced: every process that sees a change may
-- report it.
-- ARGV: expectations key, entries...
-- returns: OK, how many entries were expected
local function run()
  local seen = 0
  for n = 2, ARGC do seen = seen + redis.call('HDEL', arg(1), arg(n)) end
  return {'OK', int(seen)}
end
