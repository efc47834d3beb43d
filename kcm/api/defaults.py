"""Upstream's defaults, one function per kind.

Source: pkg/apis/core/v1/defaults.go, pkg/apis/apps/v1/defaults.go and
pkg/registry/core/namespace/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Container, Namespace, Node, Pod, PodSpec, Probe, Volume
from kcm.api.meta_v1 import KubeObject
from kcm.api.quantity import ResourceList

_MILLI = -3

ObjectT = TypeVar("ObjectT", bound=KubeObject)


def apply(obj: ObjectT) -> ObjectT:
    """Fill in the defaults of a freshly decoded object, in place; returns it."""
    fill = _BY_KIND.get(type(obj))
    if fill is not None:
        fill(obj)
    return obj


def _pod(pod: Pod) -> None:
    spec = pod.spec
    _pod_spec(spec)
    for container in (*spec.containers, *(spec.init_containers or ())):
        _requests_from_limits(container)
    if spec.enable_service_links is None:
        spec.enable_service_links = True
    if pod.status.phase is None:
        pod.status.phase = "Pending"


def _requests_from_limits(container: Container) -> None:
    resources = container.resources
    if resources.limits:
        resources.requests = {**resources.limits, **(resources.requests or {})}


def _pod_spec(spec: PodSpec) -> None:
    spec.dns_policy = spec.dns_policy or "ClusterFirst"
    spec.restart_policy = spec.restart_policy or "Always"
    spec.scheduler_name = spec.scheduler_name or "default-scheduler"
    if spec.security_context is None:
        spec.security_context = {}
    if spec.termination_grace_period_seconds is None:
        spec.termination_grace_period_seconds = 30
    for volume in spec.volumes or ():
        _volume(volume)
    spec.overhead = _milli(spec.overhead)
    for container in _containers(spec):
        _container(container)
        if spec.host_network:
            for port in container.ports or ():
                port.host_port = port.host_port or port.container_port


def _containers(spec: PodSpec) -> Iterable[Container]:
    yield from spec.containers
    yield from spec.init_containers or ()
    yield from spec.ephemeral_containers or ()


def _container(container: Container) -> None:
    if not container.image_pull_policy:
        latest = image_tag(container.image or "") == "latest"
        container.image_pull_policy = "Always" if latest else "IfNotPresent"
    container.termination_message_path = (
        container.termination_message_path or "/dev/termination-log"
    )
    container.termination_message_policy = container.termination_message_policy or "File"
    for port in container.ports or ():
        port.protocol = port.protocol or "TCP"
    for variable in container.env or ():
        _field_selectors([variable.value_from or {}])
    container.resources.limits = _milli(container.resources.limits)
    container.resources.requests = _milli(container.resources.requests)
    for probe in (container.liveness_probe, container.readiness_probe, container.startup_probe):
        _probe(probe)
    for hook in (container.lifecycle or {}).values():
        _hook(hook)


def image_tag(image: str) -> str:
    """The tag of an image reference; "latest" if it has neither tag nor digest."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return tag or ("" if digest else "latest")


def _probe(probe: Probe | None) -> None:
    if probe is None:
        return
    probe.timeout_seconds = probe.timeout_seconds or 1
    probe.period_seconds = probe.period_seconds or 10
    probe.success_threshold = probe.success_threshold or 1
    probe.failure_threshold = probe.failure_threshold or 3
    if probe.http_get is not None:
        probe.http_get.path = probe.http_get.path or "/"
        probe.http_get.scheme = probe.http_get.scheme or "HTTP"
    if probe.grpc is not None and probe.grpc.service is None:
        probe.grpc.service = ""


def _hook(hook: Any) -> None:
    request = hook.get("httpGet") if isinstance(hook, dict) else None
    if isinstance(request, dict):
        request["path"] = request.get("path") or "/"
        request["scheme"] = request.get("scheme") or "HTTP"


_FILE_MODE = 0o644
_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")


def _volume(volume: Volume) -> None:
    source = volume.source
    if not source:
        source["emptyDir"] = {}
    for name in _WITH_MODE:
        if isinstance(source.get(name), dict):
            source[name].setdefault("defaultMode", _FILE_MODE)
    if isinstance(source.get("hostPath"), dict):
        source["hostPath"].setdefault("type", "")
    if isinstance(source.get("downwardAPI"), dict):
        _field_selectors(source["downwardAPI"].get("items"))
    if isinstance(source.get("projected"), dict):
        _projected(source["projected"].get("sources"))


def _projected(sources: Any) -> None:
    for source in sources if isinstance(sources, list) else ():
        if not isinstance(source, dict):
            continue
        if isinstance(source.get("serviceAccountToken"), dict):
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        if isinstance(source.get("downwardAPI"), dict):
            _field_selectors(source["downwardAPI"].get("items"))


def _field_selectors(items: Any) -> None:
    for item in items if isinstance(items, list) else ():
        reference = item.get("fieldRef") if isinstance(item, dict) else None
        if isinstance(reference, dict):
            reference["apiVersion"] = reference.get("apiVersion") or "v1"


def _milli(amounts: ResourceList | None) -> ResourceList | None:
    """Upstream keeps thousandths at most, rounded up."""
    if not amounts:
        return amounts
    return {name: amount.round_up(_MILLI) for name, amount in amounts.items()}


def _replica_set(replica_set: ReplicaSet) -> None:
    if replica_set.spec.replicas is None:
        replica_set.spec.replicas = 1
    _pod_spec(replica_set.spec.template.spec)


_METADATA_NAME = "kubernetes.io/metadata.name"


def _namespace(namespace: Namespace) -> None:
    metadata = namespace.metadata
    if metadata.name:
        metadata.labels = {**(metadata.labels or {}), _METADATA_NAME: metadata.name}
    namespace.status.phase = namespace.status.phase or "Active"
    finalizers = namespace.spec.finalizers or []
    # Upstream adds it in the strategy for new namespaces; a deleted one may lack it.
    if "kubernetes" not in finalizers and metadata.deletion_timestamp is None:
        namespace.spec.finalizers = [*finalizers, "kubernetes"]


def _node(node: Node) -> None:
    status = node.status
    status.capacity = _milli(status.capacity)
    status.allocatable = _milli(status.allocatable)
    if status.allocatable is None and status.capacity is not None:
        status.allocatable = dict(status.capacity)


_BY_KIND: dict[type[KubeObject], Callable[[Any], None]] = {
    Pod: _pod,
    ReplicaSet: _replica_set,
    Namespace: _namespace,
    Node: _node,
}
