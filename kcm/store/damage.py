"""Objects and watch entries that cannot be read.

Guarantees: a damaged object does not keep others from being read; it is logged when it is met
first, and stands in the hash `kcm:damaged` with the reason until it is written or deleted. Does not
guarantee that a damaged object is known before somebody reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from pydantic import ValidationError

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.redisio import RedisIO
from kcm.store.watch import WatchEntry

log = structlog.get_logger("kcm.store")

MISSING = b""  # stands in a raw page for an object that was deleted meanwhile
NO_JSON = b"\0"  # stands there for an object without JSON
_SHOWN = 300  # characters of a reason that are kept


def decode_object(resource: Resource, key: str, raw: bytes) -> KubeObject:
    """Returns the object that is stored under a key. Raises: Damaged."""
    try:
        obj = codec.decode_stored(raw, resource)
        require_whole(obj, key)
    except errors.Damaged:
        raise
    except (errors.ApiError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise errors.Damaged.of(resource.name, key, _why(error)) from None
    return obj


def require_whole(obj: KubeObject, key: str) -> None:
    """Raises ValueError for an object that lacks what the store gives every object, or whose name
    is not the key's.
    """
    meta = obj.metadata
    if obj.key != key:
        raise ValueError(f"it says that it is {obj.key[:_SHOWN]!r}")
    if not meta.uid:
        raise ValueError("metadata.uid is missing")
    if not (meta.resource_version or "").isdecimal():
        raise ValueError(f"metadata.resourceVersion is {meta.resource_version!r}")


def decode_change(change: WatchEntry) -> KubeObject | None:
    """Returns the object in an entry of a watch log, or None and logs if it cannot be read.

    Such an entry says nothing about the object, for anybody may have added it.
    """
    try:
        return decode_object(change.resource, change.key, change.raw)
    except errors.Damaged as error:
        log_skipped_entry(change, error)
        return None


def log_skipped_entry(change: WatchEntry, error: Exception) -> None:
    """Logs that an entry of a watch log is skipped."""
    log.warning(
        "An entry of a watch log cannot be read and is passed over",
        resource=change.resource.name,
        key=change.key,
        entry=change.resource_version,
        type=change.type,
        error=_why(error),
    )


def _why(error: Exception) -> str:
    """Returns the reason of a damage in a few words."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:_SHOWN]
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return (str(error) or type(error).__name__)[:_SHOWN]


def record_damage(io: RedisIO, damaged: Sequence[errors.Damaged], keys: Sequence[str]) -> None:
    """Keeps the names of damaged objects with the reasons, and logs those that are new.

    If the store takes no writes, nothing is kept and all of them are logged.
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
                "A stored object cannot be read; others go on without it",
                resource=error.resource,
                key=key,
                error=error.message,
            )


def read_damaged(io: RedisIO) -> Mapping[tuple[str, str], str]:
    """Returns the damaged objects that were met: (resource, key) to the reason.

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
