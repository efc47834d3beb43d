"""Changes objects: reads, changes and writes them, again if another write came in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, cast

from kcm import errors
from kcm.api.core_v1 import Service
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import Kind
from kcm.redisio import Fence
from kcm.store.writes.guards import Unindexed
from kcm.store.writes.items import WriteItem, WriteResult, WriteStatus

ATTEMPTS = 10  # the most attempts when other writes come between the read and the write
Build = Callable[[Kind], WriteItem | None]
"""Returns the item that changes an object in this state, or None if nothing changes."""


class ModifiableStore(Protocol):
    """The methods of a store that this module uses; see the same names on `Store`."""

    def get(self, resource: Resource[Kind], key: str) -> Kind: ...

    def write(
        self, items: Sequence[WriteItem], *, fence: Fence | None = None
    ) -> Sequence[WriteResult]: ...


@dataclass(frozen=True)
class Modification(Generic[Kind]):
    """A change of the object under a key."""

    resource: Resource[Kind]
    key: str
    build: Build[Kind]
    fence: Fence | None = None
    pinned: bool = False  # whether only one state of the object may be changed


def modify(store: ModifiableStore, modification: Modification[Kind]) -> Kind:
    """Makes a change, and returns the object as stored.

    Raises Conflict after ATTEMPTS attempts, or after one if the change is pinned, and what `build`,
    reading and writing raise.
    """
    for _ in range(ATTEMPTS):
        old = store.get(modification.resource, modification.key)
        item = modification.build(old)
        if item is None:
            return old
        result = store.write([item], fence=modification.fence)[0]
        overtaken = result.status is WriteStatus.CONFLICT
        if not overtaken and not is_address_lost(result):
            return cast(Kind, result.get_stored())
        if modification.pinned and overtaken:
            break
    raise conflict(modification.resource, modification.key)


def modify_cached(
    store: ModifiableStore, cached: Kind | None, build: Build[Kind], fence: Fence | None
) -> Kind | None:
    """Writes a change of a state that may be old, and returns the object if that succeeded.

    Only a write shows whether the state is the stored one. Without a state, after an error, or if
    nothing would change, None is returned, and the caller tries again with the stored object. This
    is upstream's GuaranteedUpdate with a cached object.
    """
    if cached is None:
        return None
    try:
        item = build(cached)
        result = store.write([item], fence=fence)[0] if item is not None else None
    except errors.ApiError:
        return None
    return cast(Kind, result.get_stored()) if result is not None and result.ok else None


def is_address_lost(result: WriteResult) -> bool:
    """Reports whether the write failed because another Service has the address or node port."""
    return isinstance(result.failed_guard, Unindexed) and isinstance(result.item.obj, Service)


def conflict(resource: Resource, key: str) -> errors.Conflict:
    """Returns the error of a change that other writes have overtaken."""
    return errors.Conflict.of(resource.name, key.rpartition("/")[2])
