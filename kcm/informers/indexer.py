"""The informers' cache: objects by `namespace/name`, with named indexes.

Guarantees and limits are those of store.ThreadSafeStore. Only an informer
writes to its indexer; everybody else reads.

Source: client-go `tools/cache/index.go` and `store.go`, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.informers.store import IndexFunc, ThreadSafeStore

T = TypeVar("T", bound=KubeObject)

KeyFunc = Callable[[T], str]

NAMESPACE_INDEX = "namespace"


def meta_namespace_key(obj: KubeObject) -> str:
    """`namespace/name`, or `name` without a namespace."""
    return obj.key


def meta_namespace_index(obj: KubeObject) -> Sequence[str]:
    """The object's namespace ("" for cluster-scoped ones)."""
    return (obj.metadata.namespace or "",)


class Indexer(ThreadSafeStore[T]):
    """A ThreadSafeStore that knows its objects' keys."""

    def __init__(
        self,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
        *,
        key_func: KeyFunc[T] = meta_namespace_key,
    ) -> None:
        super().__init__({NAMESPACE_INDEX: meta_namespace_index, **(indexers or {})})
        self._key_func = key_func

    def add(self, obj: T) -> None:
        """Store the object, whether or not it is new."""
        self.put(self._key_func(obj), obj)

    update = add

    def delete(self, obj: T) -> None:
        """Drop the object with this one's key."""
        self.remove(self._key_func(obj))

    def get(self, obj: T) -> T | None:
        """The cached object with this one's key."""
        return self.get_by_key(self._key_func(obj))

    def list(self, namespace: str | None = None) -> list[T]:
        """Every object, or those of one namespace."""
        return self.list_all() if namespace is None else self.by_index(NAMESPACE_INDEX, namespace)

    def replace(self, objects: Iterable[T]) -> None:
        """Hold exactly these objects."""
        self.replace_items({self._key_func(obj): obj for obj in objects})
