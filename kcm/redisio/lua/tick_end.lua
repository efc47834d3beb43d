-- Ends one pass of a periodic loop and saves its memory.
-- ARGV: fence key, field, token; state key; '1' to replace the memory; field, value...
-- returns: OK | FENCED
local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then return {'FENCED'} end
  local key = arg(4)
  if arg(5) == '1' then
    for _, field in ipairs(redis.call('HKEYS', key)) do
      if string.sub(field, 1, 1) ~= '.' then redis.call('HDEL', key, field) end
    end
    for n = 6, ARGC, 2 do redis.call('HSET', key, arg(n), arg(n + 1)) end
  end
  redis.call('HSET', key, '.ended', int(NOW))
  return {'OK'}
end
