"""Quotas: which writes are charged to them, and for how many items of a batch they have room.

The quotas may have changed since they were read. The write script checks that they have not when
objects and quotas are written (`kcm.store.charging`).

Source: plugin/pkg/admission/resourcequota, {admission,controller}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from kcm.api.core_v1 import Pod, ResourceQuota
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.quota import Excess, charged, evaluator_of, is_tracked
from kcm.kinds.quota.amounts import growth
from kcm.kinds.quota.pods import is_resized
from kcm.store.reader import StoreReader
from kcm.store.writes.items import WriteItem, WriteResult, WriteStatus

Quotas = Sequence[ResourceQuota]


def quota_resource() -> Resource[ResourceQuota]:
    """Returns the resource of quotas."""
    return ResourceQuota.resource


def grows(resource: Resource, new: KubeObject, old: KubeObject, now: datetime) -> bool:
    """Reports whether an update makes the object use more of some quota."""
    evaluator = evaluator_of(resource)
    resized = isinstance(new, Pod) and isinstance(old, Pod) and is_resized(new, old)
    if not evaluator.on_update and not resized:
        return False
    return any(growth(evaluator.usage(new, now), evaluator.usage(old, now)).values())


def takes_quota(item: WriteItem) -> bool:
    """Reports whether a write is charged to the quotas of its namespace, if there are any."""
    if item.op == "create":
        return not item.anywhere and is_tracked(item.resource)
    return item.replaced is not None


class QuotaMemory:
    """The quotas of one store as they were last read, by namespace. Thread-safe.

    An object is refused only after its quotas were read again, since the remembered ones may be
    old.
    """

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader
        self._seen: dict[str, Quotas] = {}

    def recall(self, namespace: str) -> Quotas | None:
        """Returns the namespace's quotas as they were last read; None if it had none or they were
        not read.
        """
        return self._seen.get(namespace)

    def is_limited(self, item: WriteItem) -> bool:
        """Reports whether the write is charged to quotas that are remembered."""
        return bool(self._seen) and takes_quota(item) and (item.obj.namespace or "") in self._seen

    def remember(self, namespace: str, quotas: Quotas) -> None:
        """Stores the namespace's quotas as they are now."""
        if quotas:
            self._seen[namespace] = quotas
        else:
            self._seen.pop(namespace, None)

    def read(self, namespace: str) -> Quotas:
        """Returns the namespace's quotas as they are now. Raises StoreUnavailable."""
        return self._reader.in_namespace(quota_resource(), namespace)


@dataclass(frozen=True)
class Charge:
    """The result of charging numbered items to quotas.

    `quotas` have the new amounts; `fitting` and `refused` have the numbers of the items for which
    there was room, and of the others.
    """

    quotas: Quotas
    fitting: Sequence[int]
    refused: dict[int, str]  # by number, the reason


def charge(quotas: Quotas, items: Iterable[tuple[int, WriteItem]], now: datetime) -> Charge:
    """Charges numbered items to quotas, in order. Items for which there is no room are refused."""
    fitting: list[int] = []
    refused: dict[int, str] = {}
    for number, item in items:
        evaluator = evaluator_of(item.resource)
        try:
            quotas = charged(quotas, evaluator, item.obj, item.replaced, now)
        except Excess as why:
            refused[number] = str(why)
        else:
            fitting.append(number)
    return Charge(quotas, fitting, refused)


def check_room(memory: QuotaMemory, obj: KubeObject, now: datetime) -> None:
    """Raises Forbidden for an object for which the quotas have no room now, for dry runs.

    Raises: StoreUnavailable.
    """
    resource = obj.resource
    if not is_tracked(resource):
        return
    item = WriteItem("create", resource, obj)
    refused = charge(memory.read(obj.namespace or ""), [(0, item)], now).refused
    if refused:
        raise WriteResult(item, WriteStatus.QUOTA, refused[0]).error()
