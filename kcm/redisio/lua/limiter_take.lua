--! use lib_limiter
-- Takes a token from a bucket, for a write to a remote store. A write to the local store takes
-- it by a guard, in the moment of the write.
-- ARGV: name
-- returns: OK | EMPTY
local function run()
  return {limiter_take(arg(1)) and 'OK' or 'EMPTY'}
end
