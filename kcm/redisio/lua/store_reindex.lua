-- Builds lists and indexes of objects under other names. They replace those of a wrong type later,
-- in one step each (mend_key.lua); until then no object of these kinds can be written, so the new
-- ones are complete.
-- ARGV: the suffix of the names of the new keys, number of names, the names of the lists and
--   indexes to build, then pairs of resource and key of objects
-- returns: OK
local KEPT = 600 -- seconds until the new keys expire, in case they replace none

local function run()
  local suffix, names = arg(1), tonumber(arg(2))
  local wanted = {}
  for n = 3, 2 + names do wanted[arg(n)] = true end
  for n = 3 + names, ARGC, 2 do
    local r, k = arg(n), arg(n + 1)
    local entries = redis.pcall('HGET', P .. ':object:' .. r .. ':' .. k, 'index')
    if type(entries) == 'string' then
      local list = P .. ':keys:' .. r
      if wanted[list] then redis.call('ZADD', list .. suffix, 0, k) end
      for entry in string.gmatch(entries, '[^\n]+') do
        local index = P .. ':index:' .. entry
        if wanted[index] then redis.call('SADD', index .. suffix, r .. ' ' .. k) end
      end
    end
  end
  for name in pairs(wanted) do redis.call('EXPIRE', name .. suffix, KEPT) end
  return {'OK'}
end
