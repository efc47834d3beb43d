-- Moves a key of a wrong type aside and puts another in its place, if there is one. It does not
-- use the library, since the keys that the library reads may be the ones to move.
-- ARGV: key, the type that it should have, its new name, the name of the key that replaces it
--   or ''
-- returns: 1; 0 if the type is right, as several processes may notice a wrong one
local key, expected, aside, replacement = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local actual = redis.call('TYPE', key)['ok']
if actual == expected or actual == 'none' then
  if replacement ~= '' then redis.call('DEL', replacement) end
  return 0
end
redis.call('RENAME', key, aside)
if replacement ~= '' and redis.call('EXISTS', replacement) == 1 then
  redis.call('PERSIST', replacement)
  redis.call('RENAME', replacement, key)
end
return 1
