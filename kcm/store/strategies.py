"""What differs by kind when objects are created, updated and deleted.

The next kind with rules of its own is a class and a line in `_STRATEGIES`.
Source: pkg/registry/core/{pod,namespace,service,serviceaccount}/strategy.go,
pkg/registry/core/service/storage/storage.go, pkg/registry/apps/{replicaset,deployment}/strategy.go,
pkg/registry/discovery/endpointslice/strategy.go and
staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.core_v1 import Pod, PodStatus, Service, ServiceAccount, ServiceSpec
from kcm.api.discovery_v1 import EndpointSlice
from kcm.api.meta_v1 import KubeObject
from kcm.api.scheme import Resource


class Strategy:
    """The rules of most kinds: no status at birth, no grace period."""

    def for_create(self, obj: KubeObject) -> KubeObject:
        """The object without the parts a creator may not set."""
        status = getattr(obj, "status", None)
        return obj if status is None else obj.with_status(type(status)())

    def for_update(self, new: KubeObject, old: KubeObject) -> KubeObject:
        """The new object with what an update leaves out but does not mean to take away."""
        return new

    def is_revised(self, new: KubeObject, old: KubeObject) -> bool:
        """Whether the change counts as a new generation."""
        return bool(getattr(new, "spec", None) != getattr(old, "spec", None))

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


class DeploymentStrategy(Strategy):
    """Annotations count: a rollout copies them to its ReplicaSets."""

    def is_revised(self, new: KubeObject, old: KubeObject) -> bool:
        return super().is_revised(new, old) or dict(new.annotations) != dict(old.annotations)


class ServiceStrategy(Strategy):
    """Services have no generation, and keep the addresses and ports they were given."""

    def for_create(self, obj: KubeObject) -> KubeObject:
        assert isinstance(obj, Service)
        created = super().for_create(obj).with_metadata(generation=None)
        return created.with_spec(_with_cluster_ips(obj.spec))

    def for_update(self, new: KubeObject, old: KubeObject) -> KubeObject:
        assert isinstance(new, Service)
        assert isinstance(old, Service)
        spec = _with_allocated(new.spec, old.spec)
        return new.with_spec(_with_cluster_ips(spec))

    def is_revised(self, new: KubeObject, old: KubeObject) -> bool:
        return False


def _with_cluster_ips(spec: ServiceSpec) -> ServiceSpec:
    """Clients that know only `clusterIP` set or change the first of `clusterIPs`."""
    if spec.cluster_ip and not spec.cluster_ips:
        return spec.replace(cluster_ips=[spec.cluster_ip])
    return spec


_ADDRESSED = ("ClusterIP", "NodePort", "LoadBalancer")
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


def _with_allocated(new: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    changes: dict[str, Any] = {}
    kind = new.type or "ClusterIP"
    if kind in _ADDRESSED and old.type in _ADDRESSED and not new.cluster_ip:
        changes["cluster_ip"] = old.cluster_ip
        changes["cluster_ips"] = new.cluster_ips or old.cluster_ips
    if kind in _WITH_NODE_PORTS and old.type in _WITH_NODE_PORTS:
        changes["ports"] = _with_node_ports(new, old)
    if kind == old.type == "LoadBalancer" and not new.health_check_node_port:
        changes["health_check_node_port"] = old.health_check_node_port
    return new.replace(**changes) if changes else new


def _with_node_ports(new: ServiceSpec, old: ServiceSpec) -> list[Any] | None:
    given = {(port.protocol or "TCP", port.port): port.node_port for port in old.ports or ()}
    taken = {port.node_port for port in new.ports or ()}
    return [
        port
        if port.node_port or (known := given.get((port.protocol or "TCP", port.port))) in taken
        else port.replace(node_port=known)
        for port in new.ports or ()
    ] or new.ports


class ServiceAccountStrategy(Strategy):
    """Of the secrets, only the names are kept."""

    def for_create(self, obj: KubeObject) -> KubeObject:
        assert isinstance(obj, ServiceAccount)
        if not obj.secrets:
            return obj
        return obj.replace(secrets=[type(ref)(name=ref.name) for ref in obj.secrets])

    def for_update(self, new: KubeObject, old: KubeObject) -> KubeObject:
        return self.for_create(new)


class EndpointSliceStrategy(Strategy):
    """Slices have a generation, although they have no spec."""

    def for_create(self, obj: KubeObject) -> KubeObject:
        return obj.with_metadata(generation=1)

    def is_revised(self, new: KubeObject, old: KubeObject) -> bool:
        assert isinstance(new, EndpointSlice)
        assert isinstance(old, EndpointSlice)
        return (
            new.endpoints != old.endpoints
            or (new.ports or []) != (old.ports or [])
            or dict(new.labels) != dict(old.labels)
            or dict(new.annotations) != dict(old.annotations)
            or new.metadata.owner_references != old.metadata.owner_references
        )


class DefinitionStrategy(Strategy):
    """Definitions remember every version in which objects may have been stored."""

    def for_create(self, obj: KubeObject) -> KubeObject:
        return self.for_update(super().for_create(obj), obj)

    def for_update(self, new: KubeObject, old: KubeObject) -> KubeObject:
        assert isinstance(new, CustomResourceDefinition)
        stored = list(new.status.stored_versions or ())
        missing = [v.name for v in new.spec.versions if v.storage and v.name not in stored]
        if not missing:
            return new
        return new.with_status(new.status.replace(stored_versions=stored + missing))


_STRATEGIES: dict[str, Strategy] = {
    "pods": PodStrategy(),
    "nodes": KeepStatus(),
    "services": ServiceStrategy(),
    "serviceaccounts": ServiceAccountStrategy(),
    "endpointslices.discovery.k8s.io": EndpointSliceStrategy(),
    "deployments.apps": DeploymentStrategy(),
    "customresourcedefinitions.apiextensions.k8s.io": DefinitionStrategy(),
}
_DEFAULT = Strategy()


def strategy_of(resource: Resource) -> Strategy:
    """The rules for a resource."""
    return _STRATEGIES.get(resource.name, _DEFAULT)
