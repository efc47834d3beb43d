-- The library of every script: arguments, time, exact numbers, fences.
local P = ARGV[1]
local CALL = ARGV[3]

local function arg(i) return ARGV[4 + i] end
local ARGC = #ARGV - 4

-- The epoch, the milliseconds by which the wall clock was set back so far, the time that a test
-- has set, the server's replication id and the last token when the epoch began. No script of the
-- library changes the last two.
local META = redis.pcall('HMGET', P .. ':meta', 'epoch', 'set_back', 'time', 'replid',
  'epoch_token')
local function whole(text)
  return text and #text <= 15 and string.match(text, '^%d+$') and tonumber(text) or 0
end

-- Redis' clock in whole milliseconds; ARGV[4] lets tests step it. WALL is the server's time. A
-- test can set it for all callers: '+N' is that many milliseconds ahead of the server's, 'N' a
-- time that stands still.
-- NOW does not go back with it: delays and leases last as long as they should, even if the
-- clock is set back (see lib_lease).
local clock = redis.call('TIME')
local WALL = clock[1] * 1000 + math.floor(clock[2] / 1000) + tonumber(ARGV[4])
local ahead, moment = string.match(META[3] or '', '^(%+?)(%d+)$')
if moment and #moment <= 15 then
  WALL = (ahead == '+' and WALL or 0) + tonumber(moment)
  if ahead == '' then clock[2] = '0' end
end
local NOW = WALL + whole(META[2])
local MOMENT = NOW + clock[2] % 1000 / 1000 -- with fractions

-- Lua would print 1e14 as '1e+14'; ids and counters need all digits.
local function int(n) return string.format('%.0f', n) end

-- Reports whether the store has the epoch that the caller knows, and the server's term as master is
-- that in which it began: a promotion changes the replication id (design 0003).
local function is_epoch(name)
  if META[1] ~= name then return false end
  local term = META[4] or ''
  return term == '' or
    string.find(redis.call('INFO', 'replication'), 'master_replid:' .. term, 1, true) ~= nil
end

-- Reports whether a record that holds `held` still holds this token, and the token was drawn in this
-- epoch.
local function token_holds(held, token)
  return held == token and tonumber(token) > tonumber(META[5] or '0')
end

-- Reports whether there is no fence, or its token holds.
local function fence_holds(key, field, token)
  return key == '' or token_holds(redis.call('HGET', key, field), token)
end

-- Records that a kind's watch log no longer reaches back to `rv`. The field '*' changes with
-- every call: a reader that finds it unchanged need not read the field of each kind.
local function mark_trimmed(r, rv)
  redis.call('HSET', P .. ':trimmed', r, rv, '*', clock[1] .. '-' .. clock[2])
end
