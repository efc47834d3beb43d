-- Makes lists and indexes of objects beside those that cannot be used. They take the names
-- of the others afterwards, in one step each (mend_key.lua); until then nothing of these
-- kinds can be written, so nothing is missed.
-- ARGV: what the names of the new keys end with, number of names, the names of the lists and
--   indexes to make, then pairs of resource and key of objects
-- returns: OK
local KEPT = 600 -- seconds, in case nobody finishes this

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
