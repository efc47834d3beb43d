"""Trimming the watch logs by age and length (design 0020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from kcm.api.scheme import Resource
from kcm.redisio import RedisIO


@dataclass(frozen=True)
class Retention:
    """How much of a watch log is kept."""

    age: timedelta = timedelta(minutes=5)  # upstream compacts etcd every five minutes
    entries: int = 200_000  # per resource; bounds memory when there are many writes between passes


def drop(io: RedisIO, name: str) -> None:
    """Empties the watch log of the resource `name`. Its readers have to list again."""
    age = int(Retention().age.total_seconds() * 1000)
    io.call("store_trim", age, 0, name, call_id="")


def trim(
    io: RedisIO, resources: Sequence[Resource], retention: Retention | None = None
) -> dict[str, int]:
    """Removes entries beyond the retention, and returns the number of removed entries per resource.

    The script learns the age of entries from earlier passes. A log keeps all entries from after the
    last pass that is older than the retention's age, so run several passes within that age.
    """
    retention = retention or Retention()
    names = [resource.name for resource in resources]
    age_ms = int(retention.age.total_seconds() * 1000)
    reply = io.call("store_trim", age_ms, retention.entries, *names, call_id="")
    return {name: int(count) for name, count in zip(names, reply[1:], strict=True)}
