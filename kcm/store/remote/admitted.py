"""A store whose writes go through the API server where a policy or webhook is about them.

All else is written to Redis directly, so that controllers pay for admission only where somebody has
asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol

from kcm.api.admissionregistration_v1 import CREATE, DELETE, UPDATE
from kcm.api.scheme import Resource
from kcm.apiextensions.conversion import webhook_versions
from kcm.apimachinery.meta_v1 import Kind
from kcm.redisio import Fence
from kcm.store.options import AS_GIVEN, DeleteOptions, Subresource
from kcm.store.reader import StoreReader
from kcm.store.remote.items import RemoteItem, can_check
from kcm.store.remote.store import RemoteStore
from kcm.store.store import Store
from kcm.store.writes.collections import CollectionDeletion, ReadConverted, Rewriting
from kcm.store.writes.guards import Guard
from kcm.store.writes.items import Pattern, WriteItem, WriteResult


class AdmissionRules(Protocol):
    """Tells which writes policies and webhooks are about."""

    def name(self, resource: Resource, subresource: str, operation: str) -> bool:
        """Reports whether some rule names such writes."""


class AdmittedStore(StoreReader):
    """An `ObjectStore` that reads Redis, and decides for each write where it goes."""

    def __init__(
        self, local: Store, connect: Callable[[], RemoteStore | None], rules: AdmissionRules
    ) -> None:
        """`connect` returns the same store behind its API server, None if there is none. It is
        called when a rule names a write, until it has returned one.
        """
        super().__init__(local.io)
        self.scheme = local.scheme
        self._local = local
        self._connect = connect
        self._remote: RemoteStore | None = None
        self._rules = rules

    def build_create(
        self, obj: Kind, guards: tuple[Guard, ...] = (), *, like: Pattern | None = None
    ) -> WriteItem[Kind]:
        remote = self._find_way(obj.resource, "", CREATE, guards)
        if remote is not None:
            return remote.build_create(obj, guards)
        if like is not None and isinstance(like.item, RemoteItem):
            like = None
        return self._local.build_create(obj, guards, like=like)

    def build_update(
        self,
        new: Kind,
        old: Kind,
        *,
        subresource: Subresource = Subresource.NONE,
        guards: tuple[Guard, ...] = (),
    ) -> WriteItem[Kind] | None:
        resource = old.resource
        remote = (
            self._find_way(resource, subresource.value, UPDATE, guards)
            if subresource not in AS_GIVEN
            else None
        )
        store = remote or self._local
        return store.build_update(new, old, subresource=subresource, guards=guards)

    def build_delete(
        self, old: Kind, options: DeleteOptions, guards: tuple[Guard, ...] = ()
    ) -> WriteItem[Kind] | None:
        store = self._find_way(old.resource, "", DELETE, guards) or self._local
        return store.build_delete(old, options, guards)

    def write(
        self, items: Sequence[WriteItem[Kind]], *, fence: Fence | None = None
    ) -> Sequence[WriteResult[Kind]]:
        """Writes items in their order; those of each way that follow each other in one call."""
        results: list[WriteResult[Kind]] = []
        for is_remote, group in groupby(items, lambda item: isinstance(item, RemoteItem)):
            store = self._remote if is_remote and self._remote is not None else self._local
            results += store.write(list(group), fence=fence)
        return results

    def delete_collection(
        self, resource: Resource, namespace: str, *, fence: Fence | None = None
    ) -> CollectionDeletion:
        store = self._find_way(resource, "", DELETE, ()) or self._local
        return store.delete_collection(resource, namespace, fence=fence)

    def rewrite_page(
        self,
        resource: Resource,
        after: str,
        count: int,
        *,
        fence: Fence | None = None,
        converted: ReadConverted | None = None,
    ) -> Rewriting:
        """Rewrites objects in Redis. What a webhook converts is read from the API server."""
        if converted is None and webhook_versions(resource) is not None:
            remote = self._reach()
            converted = remote.read_page if remote is not None else None
        return self._local.rewrite_page(resource, after, count, fence=fence, converted=converted)

    def _find_way(
        self, resource: Resource, subresource: str, operation: str, guards: Sequence[Guard]
    ) -> RemoteStore | None:
        """Returns the store for a write that goes through the API server, None for others.

        A write with a guard that cannot be checked over REST is kcm's own affair.
        """
        if not self._rules.name(resource, subresource, operation):
            return None
        return self._reach() if all(can_check(guard) for guard in guards) else None

    def _reach(self) -> RemoteStore | None:
        if self._remote is None:
            self._remote = self._connect()
        return self._remote
