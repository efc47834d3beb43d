"""The adapter to Redis: connections, key names, Lua scripts.

The only importer of the `redis` package. Everything above speaks in
`RedisIO.call` (scripts) and `RedisIO.execute` (single commands), and sees the
errors of `kcm.errors`, never those of the driver.
"""

from kcm.redisio.connection import RedisIO
from kcm.redisio.keys import Keys
from kcm.redisio.scripts import Fence

__all__ = ["Fence", "Keys", "RedisIO"]
