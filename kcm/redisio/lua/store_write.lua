-- The one write of the store (DESIGN D1): a batch, each item succeeding or
-- failing by itself, the whole batch under one fence.
-- ARGV: fence key, field, token ('' '' '' for none); front-door stream, group and
--       entry id to acknowledge once every item is written ('' '' '' for none);
--       number of shared texts, the texts; number of items; then per item: header
--       (JSON), head, tail, number of a shared text ('0' for none). The object's
--       JSON is head .. resourceVersion .. tail .. shared text: copies of one
--       object send what they have in common once, and no object is decoded here.
-- header: o  create | update | delete        r  resource     k  object key
--         u  uid ('' = any for update and delete)
--         v  expected resourceVersion ('' = any)
--         i  index entries                    d  '1' when being deleted
--         g  guards, each {name, ...}: see `guards`
-- returns: OK, then two strings per item: status, detail
--   ok <rv> | exists <uid> | notfound '' | conflict <rv> | uid <uid> | guard <n>
--   | error <text>;      or FENCED alone, when the fence no longer holds
local MAX_ID = 4503599627370496 -- 2^52: beyond it doubles lose whole numbers

local function object_key(r, k) return P .. ':object:' .. r .. ':' .. k end
local function watch_key(r) return P .. ':watch:' .. r end

-- Each guard is true when the write may go ahead.
local guards = {
  -- {exists, resource, key, uid}: there, with this uid ('' = any), not being deleted
  exists = function(g)
    local cur = redis.call('HMGET', object_key(g[2], g[3]), 'uid', 'deleting')
    return cur[1] and (g[4] == '' or cur[1] == g[4]) and cur[2] ~= '1'
  end,
  -- {absent, resource, key, uid}: no such object, or one with another uid ('' = no object)
  absent = function(g)
    local uid = redis.call('HGET', object_key(g[2], g[3]), 'uid')
    return not uid or (g[4] ~= '' and uid ~= g[4])
  end,
  -- {unindexed, entry}: no object carries this index entry
  unindexed = function(g) return redis.call('SCARD', P .. ':index:' .. g[2]) == 0 end,
}

local checked = {}
-- Raises before the first write when a key holds another type than we keep there.
local function require_type(key, expected)
  if checked[key] then return end
  local actual = redis.call('TYPE', key)['ok']
  if actual ~= expected and actual ~= 'none' then
    error({err = key .. ' holds a ' .. actual .. ', not a ' .. expected})
  end
  checked[key] = true
end

local names = {}
-- The keys of a resource, their types checked once a call.
local function names_of(r)
  local own = names[r]
  if not own then
    own = {object = P .. ':object:' .. r .. ':', keys = P .. ':keys:' .. r, watch = watch_key(r)}
    require_type(own.keys, 'zset')
    require_type(own.watch, 'stream')
    names[r] = own
  end
  return own
end

local NO_ENTRIES = {}
local function entries_of(text)
  if not text or text == '' then return NO_ENTRIES end
  local found = {}
  for entry in string.gmatch(text, '[^\n]+') do found[entry] = true end
  return found
end

local function update_indexes(member, old, new)
  for entry in pairs(old) do
    if not new[entry] then redis.call('SREM', P .. ':index:' .. entry, member) end
  end
  for entry in pairs(new) do
    if not old[entry] then redis.call('SADD', P .. ':index:' .. entry, member) end
  end
end

-- A stream whose last id is ahead of the counter was written by hand: jump the
-- counter past it, or put a hopeless stream aside, which its watchers see as 410.
local function make_room(r)
  local info = redis.call('XINFO', 'STREAM', watch_key(r))
  local last = '0-0'
  for n = 1, #info, 2 do
    if info[n] == 'last-generated-id' then last = info[n + 1] end
  end
  local id = tonumber(string.match(last, '^%d+'))
  if id < MAX_ID then
    if id >= tonumber(redis.call('GET', P .. ':rv') or '0') then
      redis.call('SET', P .. ':rv', int(id))
    end
  else
    redis.call('RENAME', watch_key(r), watch_key(r) .. ':aside:' .. int(NOW))
    redis.call('HSET', P .. ':trimmed', r, redis.call('GET', P .. ':rv') or '0')
  end
end

-- resourceVersions are drawn for the whole call at once; those left over stay unused.
local drawn, last_drawn = 0, -1
local function next_rv(items)
  if drawn >= last_drawn then
    last_drawn = redis.call('INCRBY', P .. ':rv', items)
    drawn = last_drawn - items
  end
  drawn = drawn + 1
  return int(drawn)
end

-- Appends the watch entry under the next resourceVersion. This is an item's
-- first write, so what Redis refuses here (memory, disk) has changed nothing.
local function append(h, event, o, own)
  for attempt = 1, 2 do
    local rv = next_rv(o.items)
    local json = o.head .. rv .. o.tail .. o.shared
    local id = redis.pcall('XADD', own.watch, rv .. '-0',
      'type', event, 'key', h.k, 'object', json)
    if type(id) ~= 'table' then return rv, json end
    local behind = string.find(id.err, 'equal or smaller', 1, true)
      or string.find(id.err, 'exhausted', 1, true)
    if attempt == 2 or not behind then error({err = id.err}) end
    make_room(h.r)
    last_drawn = -1 -- what was drawn before lies behind the stream's last id
  end
end

local last_rvs = {}

local function put(h, o, event, own, old)
  local new = {}
  for n = 1, #h.i do
    new[h.i[n]] = true
    require_type(P .. ':index:' .. h.i[n], 'set')
  end
  local rv, json = append(h, event, o, own)
  redis.call('HSET', own.object .. h.k, 'json', json, 'rv', rv, 'uid', h.u,
    'index', table.concat(h.i, '\n'), 'deleting', h.d)
  if event == 'ADDED' then redis.call('ZADD', own.keys, 0, h.k) end
  update_indexes(h.r .. ' ' .. h.k, old, new)
  last_rvs[h.r] = rv
  return 'ok', rv
end

local function remove(h, o, own, old)
  local rv = append(h, 'DELETED', o, own)
  redis.call('DEL', own.object .. h.k)
  redis.call('ZREM', own.keys, h.k)
  update_indexes(h.r .. ' ' .. h.k, old, NO_ENTRIES)
  last_rvs[h.r] = rv
  return 'ok', rv
end

local function refused_by(list)
  for n = 1, #list do
    if not guards[list[n][1]](list[n]) then return int(n) end
  end
end

-- `o` is the object as sent: head, tail, shared; and how many items the call has.
local function write(h, o)
  local own = names_of(h.r)
  local cur = redis.call('HMGET', own.object .. h.k, 'rv', 'uid', 'index')
  if h.o == 'create' then
    if cur[2] == h.u then return 'ok', cur[1] end
    if cur[1] then return 'exists', cur[2] or '' end
  else
    if not cur[1] then return 'notfound', '' end
    if h.u ~= '' and h.u ~= cur[2] then return 'uid', cur[2] end
    if h.v ~= '' and h.v ~= cur[1] then return 'conflict', cur[1] end
  end
  local guard = h.g and refused_by(h.g)
  if guard then return 'guard', guard end
  if h.u == '' then h.u = cur[2] end
  local old = entries_of(cur[3])
  if h.o == 'delete' then return remove(h, o, own, old) end
  return put(h, o, h.o == 'create' and 'ADDED' or 'MODIFIED', own, old)
end

local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then
    redis.call('HINCRBY', P .. ':store:stats', 'fenced', 1)
    return {'FENCED'}
  end
  require_type(P .. ':last_rv', 'hash')
  require_type(P .. ':trimmed', 'hash')
  local reply = {'OK'}
  local all_fine = true
  local texts = tonumber(arg(7))
  local items = tonumber(arg(8 + texts))
  for n = 1, items do
    local at = 5 + texts + 4 * n
    local ref = arg(at + 3)
    local o = {head = arg(at + 1), tail = arg(at + 2), items = items,
      shared = ref == '0' and '' or arg(7 + tonumber(ref))}
    local fine, status, detail = pcall(write, cjson.decode(arg(at)), o)
    if not fine then
      status, detail = 'error', type(status) == 'table' and status.err or tostring(status)
    end
    reply[2 * n], reply[2 * n + 1] = status, detail
    all_fine = all_fine and status == 'ok'
  end
  for r, rv in pairs(last_rvs) do redis.call('HSET', P .. ':last_rv', r, rv) end
  if arg(6) ~= '' and all_fine then
    redis.call('XACK', arg(4), arg(5), arg(6))
    redis.call('XDEL', arg(4), arg(6))
    redis.call('HINCRBY', P .. ':events:stats', 'applied', 1)
  end
  return reply
end
