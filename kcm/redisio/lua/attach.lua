-- The first call of every process, repeated whenever the epoch is not the one that it knows.
-- An epoch ends when the server restarts, and when data is lost: a server that was emptied has
-- no epoch, and the epoch of one that lost a counter is void. A new epoch makes all older
-- positions and tokens void by moving both counters forward (design 0003).
-- ARGV: prefix, run id, format version of this program, the data id that the caller knows or ''
-- returns: status NEW | SAME | EPOCH | EMPTIED | FORMAT; the stored format for FORMAT, else
--   the epoch and the data id
local P = ARGV[1]
local meta, rv_key, token_key = P .. ':meta', P .. ':rv', P .. ':token'
local function int(n) return string.format('%.0f', n) end
local clock = redis.call('TIME')
local MICROS = clock[1] * 1000000 + clock[2]
local MAX_ID = 4503599627370496 -- as in store_write.lua

-- Renames a key of another type, which another program has written.
local function require_type(key, expected)
  local actual = redis.call('TYPE', key)['ok']
  if actual ~= expected and actual ~= 'none' then
    redis.call('RENAME', key, key .. ':aside:' .. int(MICROS))
  end
end

-- Returns the value of a counter, nil when there is none that is valid.
local function counter(key)
  local text = redis.call('GET', key)
  local number = text and string.match(text, '^%d+$') and tonumber(text)
  return number and number < MAX_ID and number or nil
end

-- Moves a counter beyond all numbers that were drawn before. If the count was lost, that is the
-- time in microseconds, since no counter grows as fast.
local function advance(key, lost)
  local new = (counter(key) or 0) + 1000000
  if lost or not counter(key) then new = math.max(new, MICROS) end
  redis.call('SET', key, int(new))
  return int(new)
end

require_type(meta, 'hash')
require_type(rv_key, 'string')
require_type(token_key, 'string')
require_type(P .. ':last_rv', 'hash')
local known = redis.call('HMGET', meta,
  'run_id', 'format', 'epoch', 'born', 'epoch_start', 'epoch_token', 'former')
local run_id, format, epoch, data_id, former = known[1], known[2], known[3], known[4], known[7]
if format and tonumber(format) and tonumber(format) > tonumber(ARGV[3]) then
  return cjson.encode({'FORMAT', format})
end

local function whole(key, oldest)
  local present = counter(key)
  return present and oldest and tonumber(oldest) and present >= tonumber(oldest)
end

local function begin_epoch(rv, token)
  epoch = ARGV[2] .. '.' .. int(MICROS) .. '.' .. rv
  redis.call('HSET', meta, 'run_id', ARGV[2], 'format', ARGV[3], 'epoch', epoch, 'born', data_id,
    'epoch_start', rv, 'epoch_token', token)
  -- No cache that was filled before may be taken for fresh.
  for _, resource in ipairs(redis.call('HKEYS', P .. ':last_rv')) do
    redis.call('HSET', P .. ':last_rv', resource, rv)
  end
end

local status = 'SAME'
if redis.call('EXISTS', meta, rv_key, token_key) == 0 then
  status, data_id = 'NEW', ARGV[2] .. '.' .. int(MICROS)
  redis.call('SET', rv_key, '0')
  redis.call('SET', token_key, '0')
  begin_epoch('0', '0')
  redis.call('HSET', P .. ':last_rv', '*', '0') -- from now on it has every write
elseif run_id ~= ARGV[2] or not epoch or not data_id
    or not whole(rv_key, known[5] or '0') or not whole(token_key, known[6] or '0') then
  status, data_id = 'EPOCH', data_id or ARGV[2] .. '.' .. int(MICROS)
  begin_epoch(advance(rv_key), advance(token_key))
end
if ARGV[4] ~= '' and ARGV[4] ~= data_id then
  status = 'EMPTIED'
  if former ~= ARGV[4] then -- the first call that knows: older positions are ahead of the counters
    redis.call('HSET', meta, 'former', ARGV[4])
    begin_epoch(advance(rv_key, true), advance(token_key, true))
    redis.pcall('HINCRBY', P .. ':store:stats', 'emptied', 1)
  end
end
return cjson.encode({status, epoch, data_id})
