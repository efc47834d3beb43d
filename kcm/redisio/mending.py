"""Mends keys of kcm that have a wrong Redis type.

Another program has written them, and every call that needs one fails. Guarantees: such a key is
renamed, to its name with `:aside:` and the time, so nothing is lost and the next call creates it
again. Lists and indexes of objects are built again from the objects before they are replaced, so no
reader gets an incomplete one. The records of last writes and of trimming are built again from the
watch logs, so no cache is taken for fresh that is not. Readers of a kind whose watch log was lost
list it again. A list or an index that was deleted is not rebuilt.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

import structlog

from kcm.redisio import scripts
from kcm.redisio.keys import Keys

log = structlog.get_logger("kcm.redis")

_BATCH = 500  # keys in one round trip

# The start of a name after the prefix, and the type. The first start that matches counts; "" means
# any type.
_TYPES: tuple[tuple[str, str], ...] = (
    ("object:", ""),  # the store handles damaged objects
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
# The keys of kombu other than queues, for the exchanges that workers use.
_BROKER = (
    "unacked", "unacked_index", "unacked_mutex", "_kombu.binding_deadlines",
    *(f"_kombu.binding{sort}.{exchange}"
      for sort in ("", "_permanent")
      for exchange in ("celery.pidbox", "reply.celery.pidbox", "celeryev", "ticks")),
)  # fmt: skip
_QUEUE_PARTS = dict.fromkeys(("again", "delayed", "leases", "waiting"), "zset")  # others: hash


class RedisCommands(Protocol):
    """The methods of `kcm.redisio.connection.RedisIO` that this module calls."""

    @property
    def keys(self) -> Keys: ...

    def scan(self, pattern: str) -> Iterator[str]: ...

    def pipeline_each(self, commands: Sequence[Sequence[Any]]) -> list[Any]: ...

    def call(self, name: str, *args: str, call_id: str | None = None) -> list[str]: ...


def type_of(name: str) -> str:
    """Returns the type that a key must have, by its name without the prefix; "" for any type."""
    if ":aside:" in name or ":anew:" in name:
        return ""
    if name.startswith("queue:"):
        return _QUEUE_PARTS.get(name.rpartition(":")[2], "hash")
    return next((kind for start, kind in _TYPES if name.startswith(start)), "")


def mend(io: RedisCommands) -> list[str]:
    """Moves aside every key of a wrong type, and rebuilds those that can be rebuilt.

    Returns the names of the keys that this call moved. Raises: StoreUnavailable.
    """
    prefix = io.keys.prefix + ":"
    names = _look(io, prefix)
    lists = [name for name in names.wrong if name.startswith((f"{prefix}keys:", f"{prefix}index:"))]
    suffix = f":anew:{uuid.uuid4().hex}"
    _reindex(io, lists, names.objects, suffix)
    made_anew = frozenset(lists)
    moved = [
        name for name in names.wrong if _move_aside(io, name, suffix if name in made_anew else "")
    ]
    if {io.keys.last_rv(), io.keys.trimmed()} & set(moved):
        _restore(io, names.kinds, trimming_lost=io.keys.trimmed() in moved)
    without_log = names.kinds & {name.removeprefix(f"{prefix}watch:") for name in moved}
    if without_log:
        io.call("store_relist", *sorted(without_log), call_id="")
    return moved


def restore_last_versions(io: RedisCommands) -> None:
    """Rebuilds the record of each kind's last write from the watch logs, if it was lost.

    Raises: StoreUnavailable.
    """
    _restore(io, _look(io, io.keys.prefix + ":").kinds, trimming_lost=False)


def _restore(io: RedisCommands, kinds: Iterable[str], *, trimming_lost: bool) -> None:
    io.call("store_restore", "1" if trimming_lost else "0", *sorted(kinds), call_id="")


@dataclass
class _Names:
    """The names of the keys that mending needs."""

    objects: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)  # resources with a list of objects or a watch log
    wrong: list[str] = field(default_factory=list)  # names of keys with an unexpected type


def _look(io: RedisCommands, prefix: str) -> _Names:
    names, keys = _Names(), io.scan(prefix + "*")
    kind_of = re.compile(f"{re.escape(prefix)}(?:keys|watch):([^:]+)$")
    while some := list(islice(keys, _BATCH)):
        names.objects += [name for name in some if name.startswith(f"{prefix}object:")]
        names.kinds |= {match[1] for name in some if (match := kind_of.match(name))}
        names.wrong += _wrong(io, prefix, some)
    return names


def mend_broker(io: RedisCommands, queues: Iterable[str]) -> None:
    """Moves aside keys of the broker that have a wrong type, with which its clients would fail.

    `queues` are the names of its queues. Raises: StoreUnavailable.
    """
    prefix = io.keys.broker_prefix()
    names = [prefix + name for name in (*queues, *_BROKER)]
    for name in _wrong(io, io.keys.prefix + ":", names):
        _move_aside(io, name)


def _move_aside(io: RedisCommands, name: str, suffix: str = "") -> bool:
    """Moves a key aside if its type is still wrong, and puts `name + suffix` in its place.

    Reports whether it did: other processes mend as well, and the key that the first one put there
    must stay.
    """
    wanted = type_of(name.removeprefix(io.keys.prefix + ":"))
    aside = f"{name}:aside:{time.time_ns() // 1_000_000}"
    replacement = name + suffix if suffix else ""
    text = scripts.load_alone("mend_key")
    (moved,) = io.pipeline_each([("EVAL", text, 0, name, wanted, aside, replacement)])
    if moved == 1:
        log.error("A key had another type than kcm stores there, and was moved aside", key=name)
    return bool(moved == 1)


def _wrong(io: RedisCommands, prefix: str, names: Sequence[str]) -> Iterator[str]:
    wanted = {name: type_of(name.removeprefix(prefix)) for name in names}
    asked = [name for name, kind in wanted.items() if kind]
    types = io.pipeline_each([("TYPE", name) for name in asked]) if asked else []
    for name, kind in zip(asked, types, strict=True):
        if isinstance(kind, bytes) and kind.decode() not in {wanted[name], "none"}:
            yield name


def _reindex(io: RedisCommands, lists: Sequence[str], objects: Sequence[str], suffix: str) -> None:
    """Builds lists and indexes again from the objects, under their names with the suffix."""
    start_of_objects = io.keys.object("", "").removesuffix(":")
    for start in range(0, len(objects) if lists else 0, _BATCH):
        names = [name.removeprefix(start_of_objects) for name in objects[start : start + _BATCH]]
        pairs = [name.partition(":") for name in names]
        flat = [part for resource, _, key in pairs for part in (resource, key)]
        io.call("store_reindex", suffix, str(len(lists)), *lists, *flat, call_id="")
