"""Turns the driver's exceptions into kcm's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import redis

from kcm import errors
from kcm.redisio.commands import Argument, name_keys
from kcm.redisio.links import Links

# The code words that the driver cuts off its exceptions' texts.
_CUT_CODES = {
    redis.exceptions.OutOfMemoryError: "OOM ",
    redis.exceptions.ReadOnlyError: "READONLY ",
}

# Seconds between closing all connections because a master misses replicas, as each process asks it
# many times a second.
_NO_REPLICAS = 5.0


@contextmanager
def translate_errors(links: Links, command: Sequence[Argument] = ()) -> Iterator[None]:
    """Raises the driver's exceptions in the block, whose calls use these links, as those of
    `kcm.errors`.

    With `command`, which the block sends, an error about the type of its key names the key.
    """
    try:
        yield
    except (
        redis.exceptions.ConnectionError,
        redis.exceptions.TimeoutError,
        OSError,  # opening a connection reads files, for which there may be no descriptor
    ) as error:
        raise errors.StoreUnavailable(f"Redis does not answer: {error}") from error
    except redis.exceptions.ResponseError as error:
        text = _CUT_CODES.get(type(error), "") + str(error)
        if command and errors.is_about_type(text):
            text = f"{name_keys(command)}: {text}"
        translated = errors.from_redis(text)
        if type(translated) is errors.WritesRefused:
            links.doubt_announced_master()
            # The name, or the sentinel, may lead to another server by now. A master that misses
            # replicas is most likely the master still.
            links.drop(every=_NO_REPLICAS if "NOREPLICAS" in text else 0.0)
        raise translated from error
    except redis.exceptions.RedisError as error:
        raise errors.KcmError(f"the Redis client failed: {error}") from error
