--! use lib_limiter
-- Takes a token of a bucket, for writes that another server's store carries out; a write of
-- our own takes it by a guard, in the moment of the write.
-- ARGV: name
-- returns: OK | EMPTY
local function run()
  return {limiter_take(arg(1)) and 'OK' or 'EMPTY'}
end
