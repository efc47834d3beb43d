-- Names the key in errors about its type, which Redis leaves out.
local server = redis

local function with_key(reply, key)
  if string.find(reply.err, 'WRONGTYPE', 1, true) then
    reply.err = tostring(key) .. ': ' .. reply.err
  end
  return reply
end

local redis = setmetatable({}, {__index = server})
function redis.pcall(...)
  local reply = server.pcall(...)
  if type(reply) == 'table' and reply.err then return with_key(reply, (select(2, ...))) end
  return reply
end

function redis.call(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then error(reply, 0) end
  return reply
end
