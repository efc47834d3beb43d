"""The interface of a store for controllers and nodes, which the local and the remote store have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kcm.api.scheme import Resource, Scheme
from kcm.apimachinery.meta_v1 import Kind
from kcm.redisio import Fence
from kcm.store.options import DeleteOptions, Subresource
from kcm.store.reader import FullList
from kcm.store.writes.collections import CollectionDeletion, ReadConverted, Rewriting
from kcm.store.writes.guards import Guard
from kcm.store.writes.items import Pattern, WriteItem, WriteResult


class ObjectStore(Protocol):
    """The methods of `Store` that controllers and nodes use. `RemoteStore` has them as well.

    They are described at the methods of `Store` of the same names.
    """

    @property
    def scheme(self) -> Scheme: ...

    @property
    def data_id(self) -> str: ...

    @property
    def takes_partial_objects(self) -> bool: ...

    def get(self, resource: Resource[Kind], key: str) -> Kind: ...

    def find(self, resource: Resource[Kind], key: str) -> Kind | None: ...

    def in_namespace(self, resource: Resource[Kind], namespace: str) -> Sequence[Kind]: ...

    def get_all(self, wanted: Sequence[tuple[Resource[Kind], str]]) -> Sequence[Kind | None]: ...

    def list_indexed(self, resource: Resource[Kind], entry: str) -> FullList[Kind]: ...

    def build_create(
        self, obj: Kind, guards: tuple[Guard, ...] = (), *, like: Pattern | None = None
    ) -> WriteItem[Kind]: ...

    def build_update(
        self,
        new: Kind,
        old: Kind,
        *,
        subresource: Subresource = Subresource.NONE,
        guards: tuple[Guard, ...] = (),
    ) -> WriteItem[Kind] | None: ...

    def build_delete(
        self, old: Kind, options: DeleteOptions, guards: tuple[Guard, ...] = ()
    ) -> WriteItem[Kind] | None: ...

    def write(
        self, items: Sequence[WriteItem[Kind]], *, fence: Fence | None = None
    ) -> Sequence[WriteResult[Kind]]: ...

    def delete_collection(
        self, resource: Resource, namespace: str, *, fence: Fence | None = None
    ) -> CollectionDeletion: ...

    def rewrite_page(
        self,
        resource: Resource,
        after: str,
        count: int,
        *,
        fence: Fence | None = None,
        converted: ReadConverted | None = None,
    ) -> Rewriting: ...
