-- Rebuilds the record of last writes if it was lost, and that of trimming if the caller moved it
-- aside, from the watch logs: their last ids are the last writes, and they begin where they were
-- trimmed. Readers of a kind without a log list it again.
-- ARGV: '1' if the record of trimming was lost, else '0'; resource...
-- returns: OK, '1' if the record of last writes was lost
local LAST = P .. ':last_rv'

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
  if #last > 15 then return end -- not an id of kcm, see store_write
  return first, last
end

local function run()
  local writes_lost, trimming_lost = not redis.call('HGET', LAST, '*'), arg(1) == '1'
  if not writes_lost and not trimming_lost then return {'OK', '0'} end
  for n = 2, ARGC do
    local r = arg(n)
    local first, last = ends_of(r)
    if not last then
      local rv = int(redis.call('INCR', P .. ':rv'))
      mark_trimmed(r, rv)
      redis.call('HSET', LAST, r, rv)
    else
      if trimming_lost then mark_trimmed(r, first and int(tonumber(first) - 1) or last) end
      if writes_lost then redis.call('HSET', LAST, r, last) end
    end
  end
  redis.call('HSET', LAST, '*', '1')
  return {'OK', writes_lost and '1' or '0'}
end
