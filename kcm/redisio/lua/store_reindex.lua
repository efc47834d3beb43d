-- Puts objects back into the list of their kind and into their indexes.
-- ARGV: pairs of resource and key
-- returns: OK, the number of objects that are there
local function run()
  local there = 0
  for n = 1, ARGC, 2 do
    local r, k = arg(n), arg(n + 1)
    local entries = redis.pcall('HGET', P .. ':object:' .. r .. ':' .. k, 'index')
    if type(entries) == 'string' then
      redis.call('ZADD', P .. ':keys:' .. r, 0, k)
      for entry in string.gmatch(entries, '[^\n]+') do
        redis.call('SADD', P .. ':index:' .. entry, r .. ' ' .. k)
      end
      there = there + 1
    end
  end
  return {'OK', int(there)}
end
