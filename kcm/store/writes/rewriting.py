"""Rewrites stored objects in the storage version of their kind, one page at a time.

Guarantees: nothing but apiVersion changes, and no object that somebody else wrote or deleted
meanwhile is overwritten. An object that cannot be read does not keep others from being rewritten.
Does not guarantee that no object is in another version afterwards: a process that has not seen the
latest definition may still write one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apiextensions.conversion import webhook_versions
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.redisio import Fence, RedisIO
from kcm.store import damage
from kcm.store.writes.items import WriteItem, WriteResult, WriteStatus

# Somebody else wrote or deleted the object meanwhile, so it need not be rewritten.
_OVERTAKEN = frozenset({WriteStatus.CONFLICT, WriteStatus.NOT_FOUND, WriteStatus.UID})

ReadConverted = Callable[[Resource, str, int], Sequence[KubeObject]]
"""Returns at least so many objects after a key, in the version of the resource."""


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
    *,
    fence: Fence | None = None,
    converted: ReadConverted | None = None,
) -> Rewriting:
    """Rewrites those of the `count` objects after a key that are in another version.

    `resource` is the storage version. Objects that a webhook converts are read with `converted`.
    Raises: Fenced, StoreUnavailable.
    """
    page = store.raw_page(resource, None, after, count)
    stale = {
        key: raw
        for key, raw in page
        if raw != damage.MISSING and _stored_version(raw) != resource.api_version
    }
    if stale and webhook_versions(resource) is not None:
        objects, faults = _read_converted(resource, after, count, stale, converted)
    else:
        objects, faults = _read(store.io, resource, stale)
    items = [
        WriteItem("update", resource, obj, obj.metadata.resource_version or "") for obj in objects
    ]
    results = store.write(items, fence=fence) if items else ()
    rejected = [r for r in results if not r.ok and r.status not in _OVERTAKEN]
    faults += [result.error() for result in rejected]
    return Rewriting(
        after=page[-1][0] if page else "",
        rewritten=sum(result.ok for result in results),
        failed=len(faults),
        error=faults[0] if faults else None,
    )


def _read(
    io: RedisIO, resource: Resource, stale: Mapping[str, bytes]
) -> tuple[list[KubeObject], list[errors.KcmError]]:
    """Returns the objects that can be read, and the errors of the others."""
    objects: list[KubeObject] = []
    faults: list[errors.KcmError] = []
    for key, raw in stale.items():
        try:
            objects.append(damage.decode_object(resource, key, raw))
        except errors.Damaged as error:
            damage.record_damage(io, [error], [key])
            faults.append(error)
    return objects, faults


def _read_converted(
    resource: Resource,
    after: str,
    count: int,
    stale: Mapping[str, bytes],
    converted: ReadConverted | None,
) -> tuple[list[KubeObject], list[errors.KcmError]]:
    """Returns the objects as the API server converts them, or the error for each of them."""
    fault: errors.KcmError = errors.ConversionFailed(
        f"only the API server asks the webhook of {resource.name}, and it is not known where it is"
    )
    if converted is not None:
        try:
            page = converted(resource, after, count)
            return [obj for obj in page if obj.key in stale], []
        except (errors.ApiError, errors.Temporary) as error:
            fault = error
    return [], [fault] * len(stale)


def _stored_version(raw: bytes) -> str:
    try:
        return _StoredVersion.model_validate_json(raw).api_version
    except ValidationError:
        return ""
