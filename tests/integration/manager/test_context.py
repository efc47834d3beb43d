from __future__ import annotations

import pytest

from kcm import errors
from kcm.manager.context.context import ControllerContext
from kcm.redisio import RedisIO


def test_a_server_that_evicts_is_refused(context: ControllerContext, io: RedisIO) -> None:
    io.execute("CONFIG SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(errors.ConfigurationError, match="maxmemory-policy is allkeys-lru"):
            context.start()
    finally:
        io.execute("CONFIG SET", "maxmemory-policy", "noeviction")
    context.start()
