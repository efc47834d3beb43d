--! use lib_limiter
-- Writes objects (design 0019): a batch of items, of which each succeeds or fails by itself, under
-- one fence.
-- ARGV: fence key, field, token ('' '' '' for none); stream of injected events, group and
--       entry id to acknowledge once every item is written ('' '' '' for none);
--       number of shared texts, the texts; number of items; then per item: header
--       (JSON), head, tail, number of a shared text ('0' for none). The object's
--       JSON is head .. resourceVersion .. tail .. shared text: for copies of an
--       object the shared text is sent once, and no object is decoded here.
-- header: o  create | update | delete        r  resource     k  object key
--         u  uid ('' = any for update and delete)
--         v  expected resourceVersion ('' = any)
--         i  index entries                    d  '1' when being deleted
--         g  guards, each {name, ...}: see `guards`
--         a  true: a create that does not need its namespace (objects of a backup have any order)
--         c  true: an update that uses more of the namespace's quotas, as every create may
--         q  true: it is charged to quotas in this call. Items with q are written together or
--            not at all; the updates of the quotas themselves come last
-- returns: OK, then two strings per item: status, detail
--   ok <rv> | exists <uid> | notfound '' | conflict <rv> | uid <uid> | guard <n>
--   | namespace missing | namespace terminating | error <text>
--   | quota '' (there are quotas, and it was not charged) | withheld '' (another with q failed);
--   or FENCED alone, when the fence no longer holds
local MAX_ID = 4503599627370496 -- 2^52, within the whole numbers that a double can represent

local RAISED = P .. ':raised'

local function object_key(r, k) return P .. ':object:' .. r .. ':' .. k end
local function watch_key(r) return P .. ':watch:' .. r end

-- Calls a command that reads a key; an error names the key.
local function read(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == 'table' and reply.err then error({err = key .. ': ' .. reply.err}) end
  return reply
end

-- Each guard returns true when the write may proceed.
local guards = {
  -- {exists, resource, key, uid}: the object exists with this uid ('' = any), not being deleted
  exists = function(g)
    local cur = read('HMGET', object_key(g[2], g[3]), 'uid', 'deleting')
    return cur[1] and (g[4] == '' or cur[1] == g[4]) and cur[2] ~= '1'
  end,
  -- {absent, resource, key, uid}: no such object, or one with another uid ('' = no object)
  absent = function(g)
    local uid = read('HGET', object_key(g[2], g[3]), 'uid')
    return not uid or (g[4] ~= '' and uid ~= g[4])
  end,
  -- {unindexed, entry}: no object has this index entry
  unindexed = function(g) return read('SCARD', P .. ':index:' .. g[2]) == 0 end,
  -- {indexed, resource, key, entry}: the object exists and has this index entry
  indexed = function(g)
    return read('SISMEMBER', P .. ':index:' .. g[4], g[2] .. ' ' .. g[3]) == 1
  end,
  -- {quotas, namespace, name, rv, ...}: these are the namespace's quotas, in these versions
  quotas = function(g)
    if read('SCARD', P .. ':index:quota:' .. g[2]) ~= (#g - 2) / 2 then return false end
    for n = 3, #g, 2 do
      local key = object_key('resourcequotas', g[2] .. '/' .. g[n])
      if read('HGET', key, 'rv') ~= g[n + 1] then return false end
    end
    return true
  end,
  -- {counted, namespace, resource, rv, ...}: nothing of these kinds was charged to the
  -- namespace's quotas after rv
  counted = function(g)
    for n = 3, #g, 2 do
      local last = read('HGET', P .. ':charged:' .. g[2], g[n])
      if last and tonumber(last) > tonumber(g[n + 1]) then return false end
    end
    return true
  end,
  -- {token, name}: the bucket had a token, which is taken, so this guard must be the last one
  token = function(g) return limiter_take(g[2]) end,
  -- {unchanged, entry, rv, stamp}: no object got or lost this index entry (a `node:` one) after
  -- rv, except by writes whose guard had the same rv and stamp
  unchanged = function(g)
    local last = read('HGET', RAISED, g[2])
    if not last then return true end
    local rv, stamp = string.match(last, '^(%d+) (.*)$')
    return tonumber(rv) <= tonumber(g[3]) or (g[4] ~= '' and stamp == g[3] .. ' ' .. g[4])
  end,
}

local checked = {}
-- Raises before the first write when a key has another type than kcm stores there. Reports
-- whether the key exists.
local function require_type(key, expected)
  if checked[key] then return true end
  local actual = redis.call('TYPE', key)['ok']
  if actual ~= expected and actual ~= 'none' then
    error({err = key .. ' holds a ' .. actual .. ', not a ' .. expected})
  end
  checked[key] = true
  return actual ~= 'none'
end

local names = {}
-- Returns the keys of a resource, whose types are checked once per call.
local function names_of(r)
  local own = names[r]
  if not own then
    own = {object = P .. ':object:' .. r .. ':', keys = P .. ':keys:' .. r, watch = watch_key(r)}
    require_type(own.keys, 'zset')
    -- A log that was deleted begins again, with a gap before it.
    if not require_type(own.watch, 'stream') then
      local newest = redis.call('HGET', P .. ':last_rv', r)
      if newest then mark_trimmed(r, newest) end
    end
    names[r] = own
  end
  return own
end

-- Returns the namespace in an object's key; nil if it has none.
local function namespace_of(k)
  local slash = string.find(k, '/', 1, true)
  return slash and string.sub(k, 1, slash - 1)
end

local namespaces = {}
-- Returns why nothing may be created in an object's namespace; nil if it may, or it has none.
local function closed(k)
  local name = namespace_of(k)
  if not name then return end
  local state = namespaces[name]
  if state == nil then
    local cur = read('HMGET', object_key('namespaces', name), 'uid', 'deleting')
    state = not cur[1] and 'missing' or cur[2] == '1' and 'terminating'
    namespaces[name] = state
  end
  return state
end

local limited = {}
-- Reports whether the item should have been charged to quotas and was not. Events never are.
local function is_uncharged(h)
  if h.q or h.r == 'events' or not (h.c or (h.o == 'create' and not h.a)) then return false end
  local name = namespace_of(h.k)
  if not name then return false end
  if limited[name] == nil then
    limited[name] = redis.call('EXISTS', P .. ':index:quota:' .. name) == 1
  end
  return limited[name]
end

local NO_ENTRIES = {}
local function entries_of(text)
  if not text or text == '' then return NO_ENTRIES end
  local found = {}
  for entry in string.gmatch(text, '[^\n]+') do found[entry] = true end
  return found
end

-- The scheduler guards its writes by the set of pods on a node. So each change of the set records
-- its rv here, and a write with such a guard records its stamp as well: the next write of its batch
-- then sees that no other write came in between.
local function raise(entry, rv, g)
  if string.sub(entry, 1, 5) ~= 'node:' then return end
  local stamp = ''
  for n = 1, g and #g or 0 do
    if g[n][1] == 'unchanged' and g[n][2] == entry then stamp = g[n][3] .. ' ' .. g[n][4] end
  end
  redis.call('HSET', RAISED, entry, rv .. ' ' .. stamp)
end

local function update_indexes(h, rv, old, new)
  local member = h.r .. ' ' .. h.k
  for entry in pairs(old) do
    if not new[entry] then
      redis.call('SREM', P .. ':index:' .. entry, member)
      raise(entry, rv)
    end
  end
  for entry in pairs(new) do
    if not old[entry] then
      redis.call('SADD', P .. ':index:' .. entry, member)
      raise(entry, rv, h.g)
    end
  end
end

-- Handles a stream whose last id is ahead of the counter, as another program has written it: moves
-- the counter past the id, or if that is too high moves the stream aside, so that watchers get 410.
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
    mark_trimmed(r, redis.call('GET', P .. ':rv') or '0')
  end
end

-- Returns a resourceVersion. They are drawn for the whole call at once; some may stay unused.
local drawn, last_drawn = 0, -1
local function next_rv(items)
  if drawn >= last_drawn then
    last_drawn = redis.call('INCRBY', P .. ':rv', items)
    drawn = last_drawn - items
  end
  drawn = drawn + 1
  return int(drawn)
end

-- Appends the watch entry with the next resourceVersion. This is an item's first write, so if Redis
-- refuses it (memory, disk) nothing has changed.
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
    last_drawn = -1 -- resourceVersions that were drawn before are below the stream's last id
  end
end

local last_rvs = {}

local DAMAGED, are_damaged = P .. ':damaged', nil
-- Reports whether any object is recorded as damaged; a write of it removes the record.
local function damaged()
  if are_damaged == nil then are_damaged = redis.call('TYPE', DAMAGED)['ok'] == 'hash' end
  return are_damaged
end

local function put(h, o, event, own, old)
  local new = {}
  for n = 1, #h.i do
    new[h.i[n]] = true
    require_type(P .. ':index:' .. h.i[n], 'set')
  end
  local charged = h.q and (h.c or h.o == 'create') and P .. ':charged:' .. namespace_of(h.k)
  if charged then require_type(charged, 'hash') end
  local rv, json = append(h, event, o, own)
  redis.call('HSET', own.object .. h.k, 'json', json, 'rv', rv, 'uid', h.u,
    'index', table.concat(h.i, '\n'), 'deleting', h.d)
  if event == 'ADDED' then redis.call('ZADD', own.keys, 0, h.k) end
  if damaged() then redis.call('HDEL', DAMAGED, h.r .. ' ' .. h.k) end
  update_indexes(h, rv, old, new)
  if charged then redis.call('HSET', charged, h.r, rv) end
  if h.r == 'resourcequotas' then limited = {} end
  last_rvs[h.r] = rv
  return 'ok', rv
end

local function remove(h, o, own, old)
  local rv = append(h, 'DELETED', o, own)
  redis.call('DEL', own.object .. h.k)
  redis.call('ZREM', own.keys, h.k)
  if damaged() then redis.call('HDEL', DAMAGED, h.r .. ' ' .. h.k) end
  update_indexes(h, rv, old, NO_ENTRIES)
  if h.r == 'nodes' then redis.call('HDEL', RAISED, 'node:' .. h.k) end
  if h.r == 'namespaces' then redis.call('DEL', P .. ':charged:' .. h.k) end
  if h.r == 'resourcequotas' then limited = {} end
  last_rvs[h.r] = rv
  return 'ok', rv
end

local function refused_by(list)
  for n = 1, #list do
    if not guards[list[n][1]](list[n]) then return int(n) end
  end
end

-- Returns status and detail of an item that must not be written; else nil, nil and the stored rv,
-- uid and index entries. A create that finds its own uid was written by an earlier call: 'ok'.
local function why_not(h, own)
  local cur = redis.pcall('HMGET', own.object .. h.k, 'rv', 'uid', 'index')
  if cur.err then -- a key of another type has the name
    if h.o == 'create' then return 'exists', '' end
    return 'error', own.object .. h.k .. ': ' .. cur.err
  end
  if h.o == 'create' then
    if cur[2] == h.u then return 'ok', cur[1] end
    local why = not h.a and closed(h.k)
    if why then return 'namespace', why end
    if cur[1] then return 'exists', cur[2] or '' end
  else
    if not cur[1] then return 'notfound', '' end
    if h.u ~= '' and h.u ~= cur[2] then return 'uid', cur[2] end
    if h.v ~= '' and h.v ~= cur[1] then return 'conflict', cur[1] end
  end
  if is_uncharged(h) then return 'quota', '' end
  local guard = h.g and refused_by(h.g)
  if guard then return 'guard', guard end
  return nil, nil, cur
end

-- Writes an item. `o` has the object's head, tail and shared text, and the number of items in the
-- call.
local function write(h, o)
  local own = names_of(h.r)
  local status, detail, cur = why_not(h, own)
  if status then return status, detail end
  if h.u == '' then h.u = cur[2] end
  if h.r == 'namespaces' then namespaces = {} end
  local old = entries_of(cur[3])
  for entry in pairs(old) do require_type(P .. ':index:' .. entry, 'set') end
  if h.o == 'delete' then return remove(h, o, own, old) end
  return put(h, o, h.o == 'create' and 'ADDED' or 'MODIFIED', own, old)
end

-- Returns the results of pcall as status and detail.
local function outcome(fine, status, detail)
  if fine then return status, detail end
  local text = type(status) == 'table' and status.err or tostring(status)
  -- The server refuses all writes, so nothing was written. The caller drops its connections, as
  -- those to a server that is no master any more are of no use.
  if text:find('READONLY', 1, true) or text:find('NOREPLICAS', 1, true) then error(status, 0) end
  return 'error', text
end

-- Returns the answers of the charged items if one of them must not be written, else none. It is
-- called before anything is written.
local function withheld(headers)
  local answers, fine = {}, true
  for n = 1, #headers do
    local h = headers[n]
    if h.q then
      local status, detail = outcome(pcall(function() return why_not(h, names_of(h.r)) end))
      answers[n] = {status or 'withheld', detail or ''}
      fine = fine and not status
    end
  end
  return fine and {} or answers
end

local function run()
  if not fence_holds(arg(1), arg(2), arg(3)) then
    redis.call('HINCRBY', P .. ':store:stats', 'fenced', 1)
    return {'FENCED'}
  end
  require_type(P .. ':last_rv', 'hash')
  require_type(P .. ':trimmed', 'hash')
  require_type(RAISED, 'hash')
  local reply = {'OK'}
  local all_fine = true
  local texts = tonumber(arg(7))
  local items = tonumber(arg(8 + texts))
  local headers, charged = {}, false
  for n = 1, items do
    headers[n] = cjson.decode(arg(5 + texts + 4 * n))
    charged = charged or headers[n].q
  end
  local answers = charged and withheld(headers) or {}
  for n = 1, items do
    local at = 5 + texts + 4 * n
    local ref = arg(at + 3)
    local o = {head = arg(at + 1), tail = arg(at + 2), items = items,
      shared = ref == '0' and '' or arg(7 + tonumber(ref))}
    local status, detail
    if answers[n] then
      status, detail = answers[n][1], answers[n][2]
    else
      status, detail = outcome(pcall(write, headers[n], o))
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
