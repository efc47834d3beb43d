-- Rebuilds the records of last writes and of trimming from the watch logs, if the first was lost:
-- the last ids of the logs are the last writes, and they begin where they were trimmed. Readers of a
-- kind without a log list it again.
-- ARGV: resource...
-- returns: OK, '1' if the record of last writes was lost
local LAST = P .. ':last_rv'
local MAX_ID = 4503599627370496 -- as in store_write.lua

-- Returns the number of a log's first entry, nil without entries, and that of its last id, nil
-- without a log.
local function ends_of(r)
  local log = P .. ':watch:' .. r
  if redis.call('TYPE', log)['ok'] ~= 'stream' then return end
  local info, first, last = redis.call('XINFO', 'STREAM', log)
  for n = 1, #info, 2 do
    if info[n] == 'last-generated-id' then last = string.match(info[n + 1], '^%d+') end
    if info[n] == 'first-entry' and info[n + 1] then
      first = string.match(info[n + 1][1], '^%d+')
    end
  end
  if #last > 16 or tonumber(last) > MAX_ID then return end -- not an id of kcm
  return first, last
end

local function run()
  if redis.call('HGET', LAST, '*') then return {'OK', '0'} end
  for n = 1, ARGC do
    local r = arg(n)
    local first, last = ends_of(r)
    if not last then
      last = int(redis.call('INCR', P .. ':rv'))
      first = nil
    end
    mark_trimmed(r, first and int(tonumber(first) - 1) or last)
    redis.call('HSET', LAST, r, last)
  end
  redis.call('HSET', LAST, '*', '1')
  return {'OK', '1'}
end
