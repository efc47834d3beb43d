"""Keys of kcm's that hold another type than kcm keeps there.

Somebody else wrote them, and every call that needs one fails. Guarantees: such a key is
moved aside, under its name and `:aside:` and the time, so nothing is lost and the next call
makes it anew; lists and indexes of objects are made again from the objects. Does not
notice a key that was deleted: who takes away what there is takes it away.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

import structlog

from kcm.redisio.keys import Keys

log = structlog.get_logger("kcm.redis")

_BATCH = 500  # keys in one round trip

# By how the name goes on behind the prefix; the first that fits counts, "" fits none.
_TYPES: tuple[tuple[str, str], ...] = (
    ("object:", ""),  # a damaged object is the store's matter
    ("keys:", "zset"),
    ("index:", "set"),
    ("watch:", "stream"),
    ("trim_marks", "zset"),
    ("pump:wake", "list"),
    ("queues", "set"),
    ("events:stats", "hash"),
    ("events", "stream"),
    ("call:", "string"),
    ("rv", "string"),
    ("token", "string"),
    ("celery:_kombu.binding_deadlines", "zset"),
    ("celery:_kombu.binding", "set"),
    ("celery:_kombu", ""),
    ("celery:unacked_index", "zset"),
    ("celery:unacked_mutex", "string"),
    ("celery:unacked", "hash"),
    ("celery:", "list"),
    *((name, "hash") for name in (
        "broker:stats", "charged:", "damaged", "dispatch:position", "expectations:", "last_rv",
        "lease:", "limiter:", "memory:", "meta", "metrics", "published:", "raised", "reported:",
        "store:stats", "tick:", "trimmed", "workers",
    )),
)  # fmt: skip
# What kombu keeps besides the queues, for the exchanges that workers use.
_BROKER = (
    "unacked", "unacked_index", "unacked_mutex", "_kombu.binding_deadlines",
    *(f"_kombu.binding{sort}.{exchange}"
      for sort in ("", "_permanent")
      for exchange in ("celery.pidbox", "reply.celery.pidbox", "celeryev", "ticks")),
)  # fmt: skip
_QUEUE_PARTS = dict.fromkeys(("again", "delayed", "leases", "waiting"), "zset")  # others: hash


class Commands(Protocol):
    """The calls of `kcm.redisio.connection.RedisIO` that this module makes."""

    @property
    def keys(self) -> Keys: ...

    def scan(self, pattern: str) -> Iterator[str]: ...

    def pipeline_each(self, commands: Sequence[Sequence[Any]]) -> list[Any]: ...

    def call(self, name: str, *args: str, call_id: str | None = None) -> list[str]: ...


def expected_type(name: str) -> str:
    """The type that a key is to have, by its name without the prefix; "" for no matter."""
    if ":aside:" in name:
        return ""
    if name.startswith("queue:"):
        return _QUEUE_PARTS.get(name.rpartition(":")[2], "hash")
    return next((kind for start, kind in _TYPES if name.startswith(start)), "")


def mend(io: Commands) -> list[str]:
    """Move aside every key of a wrong type; their names. Raises: StoreUnavailable."""
    prefix = io.keys.prefix + ":"
    objects: list[str] = []
    wrong: list[str] = []
    names = io.scan(prefix + "*")
    while some := list(islice(names, _BATCH)):
        objects += [name for name in some if name.startswith(f"{prefix}object:")]
        wrong += _wrong(io, prefix, some)
    for name in wrong:
        _move_aside(io, name)
    if any(name.startswith((f"{prefix}keys:", f"{prefix}index:")) for name in wrong):
        _reindex(io, [name.removeprefix(f"{prefix}object:") for name in objects])
    return wrong


def mend_broker(io: Commands, queues: Iterable[str]) -> None:
    """Move aside what only the broker's clients use, where it has a wrong type: they end at it.

    Raises: StoreUnavailable.
    """
    prefix = io.keys.broker_prefix()
    names = [prefix + name for name in (*queues, *_BROKER)]
    for name in _wrong(io, io.keys.prefix + ":", names):
        _move_aside(io, name)


def _move_aside(io: Commands, name: str) -> None:
    log.error("A key held another type than kcm keeps there, and was moved aside", key=name)
    io.pipeline_each([("RENAME", name, f"{name}:aside:{time.time_ns() // 1_000_000}")])


def _wrong(io: Commands, prefix: str, names: Sequence[str]) -> Iterator[str]:
    wanted = {name: expected_type(name.removeprefix(prefix)) for name in names}
    asked = [name for name, kind in wanted.items() if kind]
    found = io.pipeline_each([("TYPE", name) for name in asked]) if asked else []
    for name, kind in zip(asked, found, strict=True):
        if isinstance(kind, bytes) and kind.decode() not in {wanted[name], "none"}:
            yield name


def _reindex(io: Commands, objects: Sequence[str]) -> None:
    for start in range(0, len(objects), _BATCH):
        pairs = [name.partition(":") for name in objects[start : start + _BATCH]]
        flat = [part for resource, _, key in pairs for part in (resource, key)]
        io.call("store_reindex", *flat, call_id="")
