"""Removes objects that cannot be read.

Neither finalizers nor a grace period keep such an object, since they cannot be read. Its index
entries are looked up by its name, since those in the object may be wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import cast

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import Kind, ObjectMeta
from kcm.redisio import RedisIO

_LOOKED_UP = 1000  # index entries in one round trip
_UNKNOWN = "unknown"
_VERSION = "@"  # a placeholder for the resourceVersion, which the script inserts; in no name


def purge(io: RedisIO, resource: Resource[Kind], key: str, now: datetime) -> Kind:
    """Removes an object that cannot be read, and returns its kind and name.

    Raises: NotFound, StoreUnavailable.
    """
    namespace, _, name = key.rpartition("/")
    meta = {"name": name, "resourceVersion": _VERSION, "uid": _UNKNOWN}
    if namespace:
        meta["namespace"] = namespace
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}
    head, _, tail = json.dumps(body).partition(_VERSION)
    entries = list(_entries_of(io, f"{resource.name} {key}"))
    reply = io.call("store_purge", resource.name, key, head, tail, *entries)
    if reply[0] == "NOTFOUND":
        raise errors.NotFound.of(resource.name, name)
    last = ObjectMeta(
        name=name,
        namespace=namespace or None,
        resource_version=reply[1],
        uid=_UNKNOWN,
        deletion_timestamp=now,
    )
    whole = resource.model.model_construct
    removed = whole(api_version=resource.api_version, kind=resource.kind, metadata=last)
    return cast(Kind, removed)


def _entries_of(io: RedisIO, member: str) -> Iterator[str]:
    """Yields the index entries with this member, a resource and key separated by a space."""
    prefix = io.keys.index("")
    names = io.scan(prefix + "*")
    while some := list(islice(names, _LOOKED_UP)):
        replies = io.pipeline_each([("SISMEMBER", name, member) for name in some])
        held = zip(some, replies, strict=True)
        yield from (name.removeprefix(prefix) for name, is_in in held if is_in == 1)
