"""Upstream's defaults, one function per kind.

Guarantees: nothing is changed in place. What lacks nothing is returned as it
is, and parts that lack nothing are shared, so that defaulting what shares
parts with a cached object is safe and costs little.

Source: pkg/apis/core/v1/defaults.go, pkg/apis/apps/v1/defaults.go and
pkg/registry/core/{namespace,pod}/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kcm.api.apps_v1 import ReplicaSet
from kcm.api.base import JsonObject, Model
from kcm.api.core_v1 import (
    Container,
    ContainerPort,
    EnvVar,
    Namespace,
    Node,
    Pod,
    PodSpec,
    Probe,
    Volume,
)
from kcm.api.meta_v1 import KubeObject
from kcm.api.quantity import ResourceList

ObjectT = TypeVar("ObjectT", bound=KubeObject)
ModelT = TypeVar("ModelT", bound=Model)

_METADATA_NAME = "kubernetes.io/metadata.name"
_FILE_MODE = 0o644
_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")
_TOKEN_SECONDS = 3600
_MILLI = -3  # power of ten: the finest that upstream keeps in a resource list


def apply(obj: ObjectT) -> ObjectT:
    """The object with its kind's defaults filled in; `obj` itself if it lacks none."""
    fill = _BY_KIND.get(type(obj))
    return obj if fill is None else fill(obj)


def _pod(pod: Pod) -> Pod:
    spec = _filled(_pod_spec(pod.spec), enable_service_links=True)
    # What only pods get, not templates: requests from limits, the host's ports.
    for fill in (_requests, _host_ports) if spec.host_network else (_requests,):
        spec = _changed(
            spec,
            containers=_each(spec.containers, fill),
            init_containers=_each(spec.init_containers, fill),
        )
    return _changed(pod, spec=spec, status=_filled(pod.status, phase="Pending"))


def _requests(container: Container) -> Container:
    resources = container.resources
    missing = (resources.limits or {}).keys() - (resources.requests or {}).keys()
    if not missing:
        return container
    requests = {**(resources.limits or {}), **(resources.requests or {})}
    return container.replace(resources=resources.replace(requests=requests))


def _pod_spec(spec: PodSpec) -> PodSpec:
    spec = _changed(
        spec,
        containers=_each(spec.containers, _container),
        init_containers=_each(spec.init_containers, _container),
        ephemeral_containers=_each(spec.ephemeral_containers, _container),
        volumes=_each(spec.volumes, _volume),
        overhead=_milli(spec.overhead),
    )
    if spec.security_context is None:
        spec = spec.replace(security_context={})
    return _filled(
        spec,
        dns_policy="ClusterFirst",
        restart_policy="Always",
        scheduler_name="default-scheduler",
        termination_grace_period_seconds=30,
    )


def _host_ports(container: Container) -> Container:
    def port(found: ContainerPort) -> ContainerPort:
        return found if found.host_port else found.replace(host_port=found.container_port)

    return _changed(container, ports=_each(container.ports, port))


def _container(container: Container) -> Container:
    resources = container.resources
    latest = image_tag(container.image or "") == "latest"
    container = _changed(
        container,
        ports=_each(container.ports, lambda port: _filled(port, protocol="TCP")),
        env=_each(container.env, _variable),
        resources=_changed(
            resources, limits=_milli(resources.limits), requests=_milli(resources.requests)
        ),
        liveness_probe=_probe(container.liveness_probe),
        readiness_probe=_probe(container.readiness_probe),
        startup_probe=_probe(container.startup_probe),
        lifecycle=_lifecycle(container.lifecycle),
    )
    return _filled(
        container,
        image_pull_policy="Always" if latest else "IfNotPresent",
        termination_message_path="/dev/termination-log",
        termination_message_policy="File",
    )


def image_tag(image: str) -> str:
    """The tag of an image reference; "latest" if it has neither tag nor digest."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return tag or ("" if digest else "latest")


def _variable(variable: EnvVar) -> EnvVar:
    if not variable.value_from:
        return variable
    return _changed(variable, value_from=_field_selector(variable.value_from))


def _probe(probe: Probe | None) -> Probe | None:
    if probe is None:
        return None
    if probe.http_get is not None:
        probe = _changed(probe, http_get=_filled(probe.http_get, path="/", scheme="HTTP"))
    if probe.grpc is not None:
        probe = _changed(probe, grpc=_filled(probe.grpc, service=""))
    return _changed(
        probe,
        timeout_seconds=probe.timeout_seconds or 1,
        period_seconds=probe.period_seconds or 10,
        success_threshold=probe.success_threshold or 1,
        failure_threshold=probe.failure_threshold or 3,
    )


def _lifecycle(hooks: JsonObject | None) -> JsonObject | None:
    if not hooks:
        return hooks
    return {name: _hook(hook) for name, hook in hooks.items()}


def _hook(hook: Any) -> Any:
    request = hook.get("httpGet") if isinstance(hook, dict) else None
    if not isinstance(request, dict):
        return hook
    path, scheme = request.get("path") or "/", request.get("scheme") or "HTTP"
    return {**hook, "httpGet": {**request, "path": path, "scheme": scheme}}


def _volume(volume: Volume) -> Volume:
    source = dict(volume.source) or {"emptyDir": {}}
    for name in _WITH_MODE:
        if isinstance(source.get(name), dict):
            source[name] = {"defaultMode": _FILE_MODE, **source[name]}
    if isinstance(source.get("hostPath"), dict):
        source["hostPath"] = {"type": "", **source["hostPath"]}
    if isinstance(source.get("downwardAPI"), dict):
        source["downwardAPI"] = _field_selectors(source["downwardAPI"])
    if isinstance(source.get("projected"), dict):
        source["projected"] = _projected(source["projected"])
    return volume if source == volume.source else volume.with_source(source)


def _projected(volume: JsonObject) -> JsonObject:
    sources = volume.get("sources")
    if not isinstance(sources, list):
        return volume
    return {**volume, "sources": [_projected_source(source) for source in sources]}


def _projected_source(source: Any) -> Any:
    if not isinstance(source, dict):
        return source
    filled = dict(source)
    if isinstance(source.get("serviceAccountToken"), dict):
        token = {"expirationSeconds": _TOKEN_SECONDS, **source["serviceAccountToken"]}
        filled["serviceAccountToken"] = token
    if isinstance(source.get("downwardAPI"), dict):
        filled["downwardAPI"] = _field_selectors(source["downwardAPI"])
    return filled


def _field_selectors(volume: JsonObject) -> JsonObject:
    items = volume.get("items")
    if not isinstance(items, list):
        return volume
    return {**volume, "items": [_field_selector(item) for item in items]}


def _field_selector(item: Any) -> Any:
    reference = item.get("fieldRef") if isinstance(item, dict) else None
    if not isinstance(reference, dict) or reference.get("apiVersion"):
        return item
    return {**item, "fieldRef": {**reference, "apiVersion": "v1"}}


def _replica_set(replica_set: ReplicaSet) -> ReplicaSet:
    spec = replica_set.spec
    template = _changed(spec.template, spec=_pod_spec(spec.template.spec))
    return _changed(replica_set, spec=_filled(_changed(spec, template=template), replicas=1))


def _namespace(namespace: Namespace) -> Namespace:
    metadata, spec = namespace.metadata, namespace.spec
    if metadata.name and namespace.labels.get(_METADATA_NAME) != metadata.name:
        labels = {**namespace.labels, _METADATA_NAME: metadata.name}
        metadata = metadata.replace(labels=labels)
    finalizers = spec.finalizers or []
    # Upstream adds it to new namespaces only; one being deleted has done with it.
    if "kubernetes" not in finalizers and not namespace.deleting:
        spec = spec.replace(finalizers=[*finalizers, "kubernetes"])
    status = _filled(namespace.status, phase="Active")
    return _changed(namespace, metadata=metadata, spec=spec, status=status)


def _node(node: Node) -> Node:
    status = node.status
    capacity = _milli(status.capacity)
    allocatable = _milli(status.allocatable)
    if allocatable is None and capacity is not None:
        allocatable = capacity
    return _changed(node, status=_changed(status, capacity=capacity, allocatable=allocatable))


def _milli(amounts: ResourceList | None) -> ResourceList | None:
    """Upstream keeps thousandths at most, rounded up."""
    if not amounts:
        return amounts
    rounded = {name: amount.round_up(_MILLI) for name, amount in amounts.items()}
    return amounts if rounded == amounts else rounded


def _filled(model: ModelT, **defaults: Any) -> ModelT:
    """The model with these values where it has none (absent, or empty text)."""
    found = model.__dict__
    missing = {name: value for name, value in defaults.items() if found[name] in (None, "")}
    return _changed(model, **missing) if missing else model


def _changed(model: ModelT, **values: Any) -> ModelT:
    """The model with those of these values that differ from its own."""
    found = model.__dict__
    changes = {
        name: value
        for name, value in values.items()
        if found[name] is not value and found[name] != value
    }
    return model.replace(**changes) if changes else model


def _each(items: list[ModelT] | None, fill: Callable[[ModelT], ModelT]) -> list[ModelT] | None:
    """The items filled in; the same list if none changed."""
    if not items:
        return items
    filled = [fill(item) for item in items]
    same = all(after is before for after, before in zip(filled, items, strict=True))
    return items if same else filled


_BY_KIND: dict[type[KubeObject], Callable[[Any], Any]] = {
    Pod: _pod,
    ReplicaSet: _replica_set,
    Namespace: _namespace,
    Node: _node,
}
