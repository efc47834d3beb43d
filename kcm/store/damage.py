"""Finds and records objects and watch entries that cannot be read.

Guarantees: a damaged object does not keep others from being read. It is logged when it is first
read, and the hash `kcm:damaged` has it with the reason until it is written or deleted. Does not
guarantee that a damaged object is known before it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from pydantic import ValidationError

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.redisio import RedisIO
from kcm.store.watch import WatchEntry

log = structlog.get_logger("kcm.store")

MISSING = b""  # the JSON in a raw page of an object that was deleted meanwhile
NO_JSON = b"\0"  # the JSON in a raw page of an object whose hash has none
_SHOWN = 300  # characters of a reason that are kept


def decode_object(resource: Resource[Kind], key: str, raw: bytes) -> Kind:
    """Returns the object that is stored under a key. Raises: Damaged, ConversionFailed."""
    try:
        obj = codec.decode_stored(raw, resource)
        require_whole(obj, key)
    except (errors.Damaged, errors.ConversionFailed):
        raise
    except (errors.ApiError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise errors.Damaged.of(resource.name, key, _why(error)) from None
    return obj


def require_whole(obj: KubeObject, key: str) -> None:
    """Raises ValueError for an object without uid or resourceVersion, or with another key than
    `key`.
    """
    meta = obj.metadata
    if obj.key != key:
        raise ValueError(f"its namespace and name are those of {obj.key[:_SHOWN]!r}")
    if not meta.uid:
        raise ValueError("metadata.uid is missing")
    if not (meta.resource_version or "").isdecimal():
        raise ValueError(f"metadata.resourceVersion is {meta.resource_version!r}")


def decode_change(change: WatchEntry) -> KubeObject | None:
    """Returns the object in an entry of a watch log, or None if it cannot be read, which is logged.

    Such an entry does not mean that the object is damaged, since any client may have added it.
    """
    try:
        return decode_object(change.resource, change.key, change.raw)
    except errors.Damaged as error:
        log_skipped_entry(change, error)
        return None


def log_skipped_entry(change: WatchEntry, error: Exception) -> None:
    """Logs that an entry of a watch log is skipped."""
    log.warning(
        "An entry of a watch log cannot be read and is skipped",
        resource=change.resource.name,
        key=change.key,
        entry=change.resource_version,
        type=change.type,
        error=_why(error),
    )


def _why(error: Exception) -> str:
    """Returns the reason of the damage, shortened to _SHOWN characters."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:_SHOWN]
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return (str(error) or type(error).__name__)[:_SHOWN]


def record_damage(io: RedisIO, damaged: Sequence[errors.Damaged], keys: Sequence[str]) -> None:
    """Records damaged objects with the reasons in Redis, and logs those that are new.

    `keys` are their keys. If the store refuses writes, nothing is recorded and all of them are
    logged.
    """
    commands = [
        ("HSET", io.keys.damaged(), f"{error.resource} {key}", error.message)
        for error, key in zip(damaged, keys, strict=True)
    ]
    try:
        new: Sequence[Any] = io.pipeline(commands) if commands else []
    except errors.KcmError:
        new = [1] * len(commands)
    for error, key, is_new in zip(damaged, keys, new, strict=True):
        if is_new:
            log.error(
                "A stored object cannot be read and is left out",
                resource=error.resource,
                key=key,
                error=error.message,
            )


def read_damaged(io: RedisIO) -> Mapping[tuple[str, str], str]:
    """Returns the recorded damaged objects: the reasons by resource and key.

    Raises: Temporary.
    """
    try:
        pairs = io.execute("HGETALL", io.keys.damaged())
    except errors.Temporary:
        raise
    except errors.KcmError:  # the hash itself has another type
        return {}
    reasons = {}
    for field, text in pairs.items():
        resource, _, key = field.decode("utf-8", "replace").partition(" ")
        reasons[resource, key] = text.decode("utf-8", "replace")
    return reasons
