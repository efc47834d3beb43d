-- Removes an object that cannot be read, or the key of another type in its place, and appends its
-- deletion to the watch log.
-- ARGV: resource, key, head and tail of its last state before and after the resourceVersion, then
--   its index entries
-- returns: OK, resourceVersion | NOTFOUND
local function run()
  local r, k = arg(1), arg(2)
  local object, keys = P .. ':object:' .. r .. ':' .. k, P .. ':keys:' .. r
  local listed = redis.pcall('ZREM', keys, k)
  if redis.call('DEL', object) == 0 and listed ~= 1 then return {'NOTFOUND'} end
  redis.pcall('HDEL', P .. ':damaged', r .. ' ' .. k)
  local rv = int(redis.call('INCR', P .. ':rv'))
  local log = P .. ':watch:' .. r
  local entry = {'type', 'DELETED', 'key', k, 'object', arg(3) .. rv .. arg(4)}
  if redis.call('TYPE', log)['ok'] ~= 'stream' or
      type(redis.pcall('XADD', log, rv .. '-0', unpack(entry))) ~= 'string' then
    mark_trimmed(r, rv) -- the log cannot take the entry: its readers list again
  end
  for n = 5, ARGC do
    redis.pcall('SREM', P .. ':index:' .. arg(n), r .. ' ' .. k)
    if string.sub(arg(n), 1, 5) == 'node:' then
      redis.call('HSET', P .. ':raised', arg(n), rv .. ' ')
    end
  end
  local slash = string.find(k, '/', 1, true)
  if slash then redis.call('HSET', P .. ':charged:' .. string.sub(k, 1, slash - 1), r, rv) end
  redis.call('HSET', P .. ':last_rv', r, rv)
  return {'OK', rv}
end
