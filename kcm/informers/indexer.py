"""The cache of an informer: objects by `namespace/name`, with named indexes.

Its guarantees are those of `store.ThreadSafeStore`. Only an informer writes to its indexer; all
others read.

Source: client-go `tools/cache/index.go` and `store.go`, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.informers.store import IndexFunc, ThreadSafeStore

T = TypeVar("T", bound=KubeObject)

NAMESPACE_INDEX = "namespace"


def meta_namespace_key(obj: KubeObject) -> str:
    """Returns `namespace/name`, or `name` for an object without a namespace."""
    return obj.key


def meta_namespace_index(obj: KubeObject) -> Sequence[str]:
    """Returns the object's namespace as the only index value, "" for cluster-scoped objects."""
    return (obj.metadata.namespace or "",)


class Indexer(ThreadSafeStore[T]):
    """A ThreadSafeStore of API objects, under `namespace/name` or `name`, indexed by namespace."""

    def __init__(self, indexers: Mapping[str, IndexFunc[T]] | None = None) -> None:
        super().__init__({NAMESPACE_INDEX: meta_namespace_index, **(indexers or {})})

    def list(self, namespace: str | None = None) -> list[T]:
        """Returns every object, or those of one namespace."""
        return self.list_all() if namespace is None else self.by_index(NAMESPACE_INDEX, namespace)
