"""Deletes all objects of a kind in a namespace, and reports those that are left.

Guarantees: objects are read page by page, so there may be any number. An object that cannot be read
is purged and does not keep the others from being deleted. Does not guarantee that nothing is left:
finalizers and grace periods keep objects, and others may be created meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apiextensions.conversion import webhook_versions
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.redisio import Fence, RedisIO
from kcm.store import damage
from kcm.store.options import DeleteOptions
from kcm.store.writes.items import WriteItem, WriteResult, WriteStatus


class CollectionStore(Protocol):
    """The methods of a store that this module uses; see the same names on `Store`."""

    io: RedisIO

    def raw_pages(
        self, resource: Resource, namespace: str | None = None
    ) -> Iterator[Sequence[tuple[str, bytes]]]: ...

    def build_delete(self, old: KubeObject, options: DeleteOptions) -> WriteItem | None: ...

    def write(
        self, items: Sequence[WriteItem], *, fence: Fence | None = None
    ) -> Sequence[WriteResult]: ...

    def purge(self, resource: Resource[Kind], key: str) -> Kind: ...


_WITH_DEPENDENTS = DeleteOptions(propagation_policy="Background")


@dataclass(frozen=True)
class CollectionDeletion:
    """The result of deleting the objects of a kind in a namespace."""

    resource: Resource
    namespace: str
    deleted: int = 0  # the number of removed objects
    remaining: int = 0  # the number of objects left, which may be marked as deleted
    finalizers: Mapping[str, int] = field(default_factory=dict)  # the number of objects left by it
    grace: int = 0  # the longest grace period among the objects left, in seconds
    error: errors.KcmError | None = None  # the first error

    @property
    def clean(self) -> bool:
        """Whether no object is left and there was no error."""
        return not self.remaining and self.error is None


def summarize_rest(
    resource: Resource, namespace: str, objects: Iterable[KubeObject], deleted: int = 0
) -> CollectionDeletion:
    """Returns the result of a deletion that leaves these objects."""
    left = list(objects)
    finalizers = Counter(name for obj in left for name in obj.metadata.finalizers or ())
    grace = max((obj.metadata.deletion_grace_period_seconds or 0 for obj in left), default=0)
    return CollectionDeletion(resource, namespace, deleted, len(left), finalizers, grace)


def delete_collection(
    store: CollectionStore, resource: Resource, namespace: str, fence: Fence | None = None
) -> CollectionDeletion:
    """Deletes all objects of the kind in the namespace. Raises: Fenced, StoreUnavailable."""
    deleter = _CollectionDeleter(store, resource, fence)
    for page in store.raw_pages(resource, namespace):
        deleter.delete_page(page)
    return deleter.result(namespace)


class _CollectionDeleter:
    """Deletes the objects of a collection page by page, and collects the results."""

    def __init__(self, store: CollectionStore, resource: Resource, fence: Fence | None) -> None:
        self._store = store
        self._resource = resource
        self._fence = fence
        self._left: list[KubeObject] = []
        self._deleted = 0
        self._failed = 0
        self._error: errors.KcmError | None = None

    def delete_page(self, page: Sequence[tuple[str, bytes]]) -> None:
        items = [item for key, raw in page if raw and (item := self._item(key, raw))]
        for result in self._store.write(items, fence=self._fence):
            self._settle(result)

    def _item(self, key: str, raw: bytes) -> WriteItem | None:
        try:
            obj = damage.decode_object(self._resource, key, raw)
        except errors.Damaged as error:
            self._purge(key, error)
            return None
        item = self._store.build_delete(obj, _WITH_DEPENDENTS)
        if item is None:
            self._left.append(obj)
        return item

    def _purge(self, key: str, error: errors.Damaged) -> None:
        """Removes an object that cannot be read, which would otherwise keep its namespace
        forever.
        """
        damage.record_damage(self._store.io, [error], [key])
        with suppress(errors.NotFound):
            self._store.purge(self._resource, key)
        self._deleted += 1

    def _settle(self, result: WriteResult) -> None:
        if result.ok and result.item.op == "update":
            self._left.append(result.get_stored())
        elif result.ok or result.status is WriteStatus.NOT_FOUND:
            self._deleted += 1
        elif result.status is WriteStatus.CONFLICT:  # another write came in between
            self._fail(None)
        else:
            self._fail(result.error())

    def _fail(self, error: errors.KcmError | None) -> None:
        self._failed += 1
        self._error = self._error or error

    def result(self, namespace: str) -> CollectionDeletion:
        deletion = summarize_rest(self._resource, namespace, self._left, self._deleted)
        return replace(deletion, remaining=deletion.remaining + self._failed, error=self._error)


# --- Rewrites stored objects in the storage version of their kind, one page at a time.
#
# Guarantees: nothing but apiVersion changes, and no object that somebody else wrote or deleted
# meanwhile is overwritten. An object that cannot be read does not keep others from being rewritten.
# Does not guarantee that no object is in another version afterwards: a process that has not seen
# the latest definition may still write one.


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
