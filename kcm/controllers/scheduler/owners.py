"""Finds the pods that a pod without topology spread constraints is spread among by default.

Source: DefaultSelector in pkg/scheduler/framework/plugins/helper/spread.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.apps_v1 import ReplicaSet, StatefulSet
from kcm.api.core_v1 import ReplicationController, Service
from kcm.apimachinery.labels import Requirement, Selector
from kcm.controllers.scheduler.nodeinfo import PodInfo, owner_of
from kcm.helpers.owners import selector_of
from kcm.sdk import Lister, View

ReplicaSets = Lister[ReplicaSet] | Lister[ReplicationController]


class OwnerSelectors:
    """The selectors of Services and of the controllers that own pods."""

    def __init__(self) -> None:
        self._services: dict[str, list[dict[str, str]]] = {}
        self._owners: dict[str, ReplicaSets | Lister[StatefulSet]] = {}  # by kind

    def update(self, view: View) -> bool:
        """Reads the caches; returns whether the selectors of Services have changed."""
        self._owners = {
            "ReplicaSet": view.lister(ReplicaSet),
            "ReplicationController": view.lister(ReplicationController),
            "StatefulSet": view.lister(StatefulSet),
        }
        selectors = _selectors(view.lister(Service).list())
        changed = selectors != self._services
        self._services = selectors
        return changed

    def selector_of(self, info: PodInfo) -> Selector | None:
        """Returns one selector with all requirements of the pod's Services and its owner.

        Returns None if it has neither.
        """
        wanted: dict[str, str] = {}
        for selector in self._services.get(info.namespace, ()):
            if selector.items() <= info.labels.items():
                wanted |= selector
        requirements = [Requirement(key, "=", (value,)) for key, value in wanted.items()]
        owner = self._owner_selector(info)
        if owner is not None:
            requirements += owner.requirements
        return Selector(tuple(requirements)) if requirements else None

    def _owner_selector(self, info: PodInfo) -> Selector | None:
        kind, name, uid = owner_of(info.source)
        lister = self._owners.get(kind)
        owner = lister.find(f"{info.namespace}/{name}") if lister is not None else None
        if owner is None or owner.uid != uid:
            return None
        return selector_of(owner)


def _selectors(services: Iterable[Service]) -> dict[str, list[dict[str, str]]]:
    by_namespace: dict[str, list[dict[str, str]]] = {}
    for service in services:
        if service.spec.selector:
            by_namespace.setdefault(service.namespace or "", []).append(service.spec.selector)
    return by_namespace
