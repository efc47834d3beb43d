"""Rewrites stored objects in the storage version of their kind, one page at a time.

Guarantees: nothing but apiVersion changes, and no object that somebody else wrote or deleted
meanwhile is overwritten. An object that cannot be read does not keep others from being rewritten.
Does not guarantee that no object is in another version afterwards: a process that has not seen the
latest definition may still write one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kcm import errors
from kcm.api.scheme import Resource
from kcm.redisio import Fence, RedisIO
from kcm.store import damage
from kcm.store.writes.items import WriteItem
from kcm.store.writes.results import WriteResult, WriteStatus

# Somebody else wrote or deleted the object meanwhile, so it need not be rewritten.
_OVERTAKEN = frozenset({WriteStatus.CONFLICT, WriteStatus.NOT_FOUND, WriteStatus.UID})


class RewritingStore(Protocol):
    """The methods of a store that this module uses; see the same names on `Store`."""

    io: RedisIO

    def raw_page(
        self, resource: Resource, namespace: str | None, after: str, count: int
    ) -> Sequence[tuple[str, bytes]]: ...

    def write(
        self, items: Sequence[WriteItem], *, fence: Fence | None = None
    ) -> Sequence[WriteResult]: ...


@dataclass(frozen=True)
class Rewriting:
    """The result of rewriting a page."""

    after: str = ""  # the key of the page's last object, "" if there was none left
    rewritten: int = 0
    failed: int = 0  # objects that cannot be read or written
    error: errors.KcmError | None = None  # the first error


class _StoredVersion(BaseModel):
    model_config = ConfigDict(extra="ignore")

    api_version: str = Field(default="", alias="apiVersion")


def rewrite_page(
    store: RewritingStore,
    resource: Resource,
    after: str,
    count: int,
    fence: Fence | None = None,
) -> Rewriting:
    """Rewrites those of the `count` objects after a key that are in another version.

    `resource` is the storage version. Raises: Fenced, StoreUnavailable.
    """
    page = store.raw_page(resource, None, after, count)
    items: list[WriteItem] = []
    faults: list[errors.KcmError] = []
    for key, raw in page:
        if raw == damage.MISSING or _stored_version(raw) == resource.api_version:
            continue
        try:
            obj = damage.decode_object(resource, key, raw)
        except errors.Damaged as error:
            damage.record_damage(store.io, [error], [key])
            faults.append(error)
            continue
        version = obj.metadata.resource_version or ""
        items.append(WriteItem("update", resource, obj, version))
    results = store.write(items, fence=fence) if items else ()
    rejected = [r for r in results if not r.ok and r.status not in _OVERTAKEN]
    faults += [result.error() for result in rejected]
    return Rewriting(
        after=page[-1][0] if page else "",
        rewritten=sum(result.ok for result in results),
        failed=len(faults),
        error=faults[0] if faults else None,
    )


def _stored_version(raw: bytes) -> str:
    try:
        return _StoredVersion.model_validate_json(raw).api_version
    except ValidationError:
        return ""
