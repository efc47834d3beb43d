"""The adapter to Redis: connections, key names, Lua scripts.

Only this package imports `redis`. Everything above it calls scripts with `RedisIO.call` and plain
commands with `RedisIO.execute`, and sees the errors of `kcm.errors`, never the driver's.
"""

from kcm.redisio.connection import RedisIO
from kcm.redisio.keys import Keys
from kcm.redisio.scripts import Fence

__all__ = ["Fence", "Keys", "RedisIO"]
