"""What differs by kind when objects are created and deleted.

The next kind with rules of its own is a class and a line in `_STRATEGIES`.
Source: pkg/registry/core/{pod,namespace}/strategy.go, pkg/registry/apps/replicaset/strategy.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import Pod, PodStatus
from kcm.api.meta_v1 import KubeObject
from kcm.api.scheme import Resource


class Strategy:
    """The rules of most kinds: no status at birth, no grace period."""

    def for_create(self, obj: KubeObject) -> KubeObject:
        """The object without the parts a creator may not set."""
        status = getattr(obj, "status", None)
        return obj if status is None else obj.with_status(type(status)())

    def grace_period(self, obj: KubeObject, requested: int | None) -> int:
        """Seconds between the deletion mark and the removal."""
        return 0


class PodStrategy(Strategy):
    """Pods start Pending and end gracefully once a node runs them."""

    def for_create(self, obj: KubeObject) -> KubeObject:
        return obj.with_status(PodStatus(phase="Pending"))

    def grace_period(self, obj: KubeObject, requested: int | None) -> int:
        assert isinstance(obj, Pod)
        if not obj.spec.node_name:
            return 0
        if obj.status.phase in ("Failed", "Succeeded"):
            return 0
        grace = obj.spec.termination_grace_period_seconds if requested is None else requested
        return max(grace if grace is not None else 30, 0) if grace != -1 else 1


class KeepStatus(Strategy):
    """Nodes come with their status."""

    def for_create(self, obj: KubeObject) -> KubeObject:
        return obj


_STRATEGIES: dict[str, Strategy] = {"pods": PodStrategy(), "nodes": KeepStatus()}
_DEFAULT = Strategy()


def strategy_of(resource: Resource) -> Strategy:
    """The rules for a resource."""
    return _STRATEGIES.get(resource.name, _DEFAULT)
