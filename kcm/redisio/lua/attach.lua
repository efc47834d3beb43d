-- First call of every process, and again whenever the server's run id changed.
-- Stores the run id; when it is new, makes all older positions and tokens void
-- by adding a million to both counters (DESIGN D17).
-- ARGV: prefix, run id, format version of this program
-- returns: status NEW | SAME | EPOCH | FORMAT, and for FORMAT the stored version
local P = ARGV[1]
local meta = P .. ':meta'
local stored = redis.call('HMGET', meta, 'run_id', 'format')
if stored[2] and tonumber(stored[2]) > tonumber(ARGV[3]) then
  return cjson.encode({'FORMAT', stored[2]})
end
if stored[1] == ARGV[2] then return cjson.encode({'SAME'}) end
redis.call('HSET', meta, 'run_id', ARGV[2], 'format', ARGV[3])
if not stored[1] then return cjson.encode({'NEW'}) end
local rv = redis.call('INCRBY', P .. ':rv', 1000000)
local token = redis.call('INCRBY', P .. ':token', 1000000)
-- No cache may pass for fresh that was filled before.
for _, resource in ipairs(redis.call('HKEYS', P .. ':last_rv')) do
  redis.call('HSET', P .. ':last_rv', resource, string.format('%.0f', rv))
end
redis.call('HSET', meta, 'epoch_start', string.format('%.0f', rv),
  'epoch_token', string.format('%.0f', token))
return cjson.encode({'EPOCH'})
