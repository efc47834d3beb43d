-- What every script starts with: arguments, time, exact numbers, fences.
local P = ARGV[1]
local CALL = ARGV[3]

local function arg(i) return ARGV[4 + i] end
local ARGC = #ARGV - 4

-- The epoch, and by how many milliseconds the wall clock was set back so far.
local META = redis.pcall('HMGET', P .. ':meta', 'epoch', 'set_back')
local function whole(text)
  return text and #text <= 15 and string.match(text, '^%d+$') and tonumber(text) or 0
end

-- Redis' clock in whole milliseconds; ARGV[4] lets tests step it. WALL is what the server
-- shows. NOW does not go back with it: what is due, and what ends, does so after the time
-- that it was given, whoever sets the clock (see lib_lease).
local clock = redis.call('TIME')
local WALL = clock[1] * 1000 + math.floor(clock[2] / 1000) + tonumber(ARGV[4])
local NOW = WALL + whole(META[2])
local MOMENT = NOW + clock[2] % 1000 / 1000 -- with fractions

-- Lua would print 1e14 as '1e+14'; ids and counters need all digits.
local function int(n) return string.format('%.0f', n) end

-- true when there is no fence, or the record still holds this token and the
-- token was drawn in this epoch.
local function fence_holds(key, field, token)
  if key == '' then return true end
  if redis.call('HGET', key, field) ~= token then return false end
  local oldest = redis.call('HGET', P .. ':meta', 'epoch_token')
  return tonumber(token) > tonumber(oldest or '0')
end

-- A kind's watch log no longer reaches back to `rv`. The field '*' changes with
-- every call, so that a reader who saw it unchanged need not ask for each kind.
local function mark_trimmed(r, rv)
  redis.call('HSET', P .. ':trimmed', r, rv, '*', clock[1] .. '-' .. clock[2])
end
