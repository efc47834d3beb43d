"""The positions up to which kinds were dispatched."""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.scheme import Resource
from kcm.redisio import RedisIO
from kcm.store.watch import parse_version


def read_positions(io: RedisIO, resources: Sequence[Resource]) -> dict[Resource, int]:
    """Returns the resourceVersions up to which kinds were dispatched, of those that ever were.

    A damaged position is 0, before the first change. Raises StoreUnavailable.
    """
    if not resources:
        return {}
    names = [resource.name for resource in resources]
    stored = io.execute("HMGET", io.keys.dispatch_position(), *names)
    pairs = zip(resources, stored, strict=True)
    return {resource: parse_version(text) for resource, text in pairs if text is not None}
