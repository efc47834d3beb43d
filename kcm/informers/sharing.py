"""Shares equal parts of cached objects in memory.

Pods of one ReplicaSet have the same labels, owner, containers and volumes. Shared, these take no
memory per pod, and a sync that iterates a thousand pods finds them in the processor's cache instead
of waiting for memory a thousand times. A running pod of a set takes 9 KB instead of 18.

Guarantees: an object with shared parts is equal to what it was before. Does not guarantee that
equal parts are always the same object. Use it only for objects to which there is no other reference
yet, and that are not changed from then on.
"""

from __future__ import annotations

from collections.abc import Hashable
from sys import getrefcount
from typing import Any, TypeVar

from kcm.api.core_v1 import Pod, PodSpec
from kcm.apimachinery.base import compact, structs_of
from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference

T = TypeVar("T", bound=KubeObject)

_LEAST = 500  # parts that are remembered in any case
_HELD_HERE = 2  # references to a part that no object has: the dictionary's, and the question's


class Sharing:
    """The parts that one cache has seen. Not thread-safe."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, Any] = {}
        self._specs: dict[Hashable, dict[str, Any]] = {}  # of a pod of each owner
        self._limit = _LEAST  # parts, before it looks which of them are still used

    def share(self, obj: T) -> T:
        """Returns the object, compact, with parts replaced by equal ones that were seen before.

        These are its labels and owner references and, for a pod, the parts of its template.
        """
        metadata = obj.metadata.__dict__
        labels, owners = metadata["labels"], metadata["owner_references"]
        if labels:
            metadata["labels"] = self._parts.setdefault(tuple(labels.items()), labels)
        if owners:
            identities = tuple([_identity(owner) for owner in owners])
            metadata["owner_references"] = self._parts.setdefault(identities, owners)
        if isinstance(obj, Pod):
            self._share_template(obj)
        if len(self._parts) + len(self._specs) > self._limit:
            self._forget_unused()
        return compact(obj)

    def _forget_unused(self) -> None:
        """Forgets the parts that no object has any more.

        It looks again when there are twice as many as are left, so the cost for a part is constant.
        """
        parts, specs = self._parts, self._specs
        for key in [key for key in parts if getrefcount(parts[key]) == _HELD_HERE]:
            del parts[key]
        # Other pods of the owner have the containers, even if this one is gone.
        unused = [key for key in specs if getrefcount(specs[key]["containers"]) == _HELD_HERE]
        for key in unused:
            if getrefcount(specs[key]) == _HELD_HERE:
                del specs[key]
        self._limit = max(_LEAST, 2 * (len(parts) + len(specs)))

    def _share_template(self, pod: Pod) -> None:
        """Replaces parts of the spec by equal ones of the pod of the same owner that was seen
        last.
        """
        owners = pod.metadata.owner_references
        maker = owners[0].uid if owners else pod.metadata.generate_name
        if not maker:
            return
        key, spec = (maker, pod.namespace), pod.spec.__dict__
        earlier = self._specs.setdefault(key, spec)
        if earlier is spec:
            return
        for name in structs_of(PodSpec):
            if spec[name] is not None and spec[name] == earlier[name]:
                spec[name] = earlier[name]
        if spec["containers"] is not earlier["containers"]:
            self._specs[key] = spec  # the template changed


def _identity(owner: OwnerReference) -> Hashable:
    # Unknown fields may hold anything, so a reference with such fields is not shared.
    return id(owner) if owner.__pydantic_extra__ else tuple(owner.__dict__.values())
