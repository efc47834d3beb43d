-- The first call of every process, repeated whenever the epoch is not the one that it knows.
-- An epoch ends with the server's term as master, with its run, and when data is lost: a server
-- that was emptied has no epoch, and the epoch of one that lost a counter is void. It ends, too,
-- when a caller knows of a later one, which was lost with another server. A new epoch makes all
-- older positions and tokens void by moving both counters forward (design 0003).
-- ARGV: prefix, format version of this program, and what the caller knows, each '' for nothing:
--   the data id, the epoch
-- returns: status NEW | SAME | EPOCH | EMPTIED | FORMAT; the stored format for FORMAT, else
--   the epoch, the data id, and the server's replication id
local P = ARGV[1]
local meta, rv_key, token_key = P .. ':meta', P .. ':rv', P .. ':token'
local function int(n) return string.format('%.0f', n) end
local clock = redis.call('TIME')
local MICROS = clock[1] * 1000000 + clock[2]
local MAX_ID = 4503599627370496 -- as in store_write.lua
local BEYOND = 1000000 -- more than a lost epoch gave, where no clock can tell

-- Returns a field of INFO, '' if this server has none of the name.
local function info(section, name)
  return string.match(redis.call('INFO', section), name .. ':(%w+)') or ''
end
local RUN_ID, REPLID = info('server', 'run_id'), info('replication', 'master_replid')

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

-- Moves a counter beyond all numbers that were drawn before, here or on a server of which nothing
-- is left: to the time in microseconds, since no counter grows as fast. `start` is where an epoch
-- began that the caller knows and this server does not; where that is in the future, this server's
-- clock is behind.
local function advance(key, start)
  local new = math.max(MICROS, (counter(key) or 0) + 1)
  if start >= MICROS then new = math.max(new, start + BEYOND) end
  redis.call('SET', key, int(new))
  return int(new)
end

require_type(meta, 'hash')
require_type(rv_key, 'string')
require_type(token_key, 'string')
require_type(P .. ':last_rv', 'hash')
local stored = redis.call('HMGET', meta, 'run_id', 'format', 'epoch', 'born', 'epoch_start',
  'epoch_token', 'former', 'replid')
local run_id, format, epoch, data_id, former = stored[1], stored[2], stored[3], stored[4], stored[7]
if format and tonumber(format) and tonumber(format) > tonumber(ARGV[2]) then
  return cjson.encode({'FORMAT', format})
end

-- Returns the counters with which an epoch began, 0 for one that does not say so.
local function starts_of(name)
  local rv, token = string.match(name or '', '%.(%d+):(%d+)$')
  return tonumber(rv or '0'), tonumber(token or '0')
end
local known_rv, known_token = starts_of(ARGV[4])
-- Reports whether the caller knows an epoch that did not come before the stored one.
local function is_behind()
  local rv, token = starts_of(epoch)
  return ARGV[4] ~= epoch and known_rv > 0 and (known_rv >= rv or known_token >= token)
end

local function whole(key, oldest)
  local present = counter(key)
  return present and oldest and tonumber(oldest) and present >= tonumber(oldest)
end

local function begin_epoch(rv, token)
  epoch = RUN_ID .. '.' .. int(MICROS) .. '.' .. rv .. ':' .. token
  redis.call('HSET', meta, 'run_id', RUN_ID, 'replid', REPLID, 'format', ARGV[2], 'epoch', epoch,
    'born', data_id, 'epoch_start', rv, 'epoch_token', token)
  -- No cache that was filled before may be taken for fresh.
  for _, resource in ipairs(redis.call('HKEYS', P .. ':last_rv')) do
    redis.call('HSET', P .. ':last_rv', resource, rv)
  end
end

local status = 'SAME'
if redis.call('EXISTS', meta, rv_key, token_key) == 0 then
  status, data_id = 'NEW', RUN_ID .. '.' .. int(MICROS)
  -- A server that was a replica may have lost what its master had before.
  local first = string.match(info('replication', 'master_replid2'), '[^0]') and MICROS or 0
  redis.call('SET', rv_key, int(first))
  redis.call('SET', token_key, int(first))
  begin_epoch(int(first), int(first))
  redis.call('HSET', P .. ':last_rv', '*', '0') -- from now on it has every write
elseif run_id ~= RUN_ID or stored[8] ~= REPLID or not epoch or not data_id or is_behind()
    or not whole(rv_key, stored[5] or '0') or not whole(token_key, stored[6] or '0') then
  status, data_id = 'EPOCH', data_id or RUN_ID .. '.' .. int(MICROS)
  begin_epoch(advance(rv_key, known_rv), advance(token_key, known_token))
end
if ARGV[3] ~= '' and ARGV[3] ~= data_id then
  status = 'EMPTIED'
  if former ~= ARGV[3] then -- the first call that knows: older positions are ahead of the counters
    redis.call('HSET', meta, 'former', ARGV[3])
    begin_epoch(advance(rv_key, known_rv), advance(token_key, known_token))
    redis.pcall('HINCRBY', P .. ':store:stats', 'emptied', 1)
  end
end
return cjson.encode({status, epoch, data_id, REPLID})
