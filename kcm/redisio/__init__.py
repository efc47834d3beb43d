"""The adapter to Redis: connections, key names, Lua scripts.

Only this package imports `redis`. All other packages call scripts with `RedisIO.call` and plain
commands with `RedisIO.execute`, which raise the errors of `kcm.errors`, never the driver's.
"""

from kcm.redisio.connection import RedisIO
from kcm.redisio.keys import Keys
from kcm.redisio.links import Links
from kcm.redisio.scripts import Fence

__all__ = ["Fence", "Keys", "Links", "RedisIO"]
