"""Deletes keys of the broker that have a wrong type.

Another program has written them, and with them no worker starts. The broker's messages are wake-ups
that are sent again when they are lost (design 0004), so deleting such a key costs seconds at most.
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from kcm.redisio.connection import RedisIO

log = structlog.get_logger("kcm.redis")

# The keys of kombu other than queues, for the exchanges that workers use, and their types.
_TYPES = {
    "unacked": "hash",
    "unacked_index": "zset",
    "unacked_mutex": "string",
    "_kombu.binding_deadlines": "zset",
    **{
        f"_kombu.binding{sort}.{exchange}": "set"
        for sort in ("", "_permanent")
        for exchange in ("celery.pidbox", "reply.celery.pidbox", "celeryev", "ticks")
    },
}


def delete_wrong_keys(io: RedisIO, queues: Iterable[str]) -> None:
    """Deletes the keys of the broker, with these queues, that have a wrong type.

    Raises: StoreUnavailable.
    """
    prefix = io.keys.broker_prefix()
    types = _TYPES | dict.fromkeys(queues, "list")
    replies = io.pipeline_each([("TYPE", prefix + name) for name in types])
    for (name, expected), reply in zip(types.items(), replies, strict=True):
        if isinstance(reply, bytes) and reply.decode() not in {expected, "none"}:
            io.execute("DEL", prefix + name)
            log.error(
                "A key of the broker had another type than kombu stores there, and was deleted",
                key=prefix + name,
                type=reply.decode(),
            )
