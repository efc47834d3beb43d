"""Defaults of pods and pod templates.

Source: pkg/apis/core/v1/defaults.go and pkg/registry/core/pod/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

from kcm.api.base import JsonObject
from kcm.api.core_v1 import Container, ContainerPort, EnvVar, Pod, PodSpec, Probe, Volume
from kcm.api.defaults.filling import changed, each, filled, milli

_FILE_MODE = 0o644
_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")
_TOKEN_SECONDS = 3600


def pod(pod: Pod) -> Pod:
    spec = filled(pod_spec(pod.spec), enable_service_links=True)
    # What only pods get, not templates: requests from limits, the host's ports.
    for fill in (_requests, _host_ports) if spec.host_network else (_requests,):
        spec = changed(
            spec,
            containers=each(spec.containers, fill),
            init_containers=each(spec.init_containers, fill),
        )
    return changed(pod, spec=spec, status=filled(pod.status, phase="Pending"))


def _requests(container: Container) -> Container:
    resources = container.resources
    missing = (resources.limits or {}).keys() - (resources.requests or {}).keys()
    if not missing:
        return container
    requests = {**(resources.limits or {}), **(resources.requests or {})}
    return container.replace(resources=resources.replace(requests=requests))


def pod_spec(spec: PodSpec) -> PodSpec:
    spec = changed(
        spec,
        containers=each(spec.containers, _container),
        init_containers=each(spec.init_containers, _container),
        ephemeral_containers=each(spec.ephemeral_containers, _container),
        volumes=each(spec.volumes, _volume),
        overhead=milli(spec.overhead),
    )
    if spec.security_context is None:
        spec = spec.replace(security_context={})
    return filled(
        spec,
        dns_policy="ClusterFirst",
        restart_policy="Always",
        scheduler_name="default-scheduler",
        termination_grace_period_seconds=30,
    )


def _host_ports(container: Container) -> Container:
    def port(found: ContainerPort) -> ContainerPort:
        return found if found.host_port else found.replace(host_port=found.container_port)

    return changed(container, ports=each(container.ports, port))


def _container(container: Container) -> Container:
    resources = container.resources
    latest = image_tag(container.image or "") == "latest"
    container = changed(
        container,
        ports=each(container.ports, lambda port: filled(port, protocol="TCP")),
        env=each(container.env, _variable),
        resources=changed(
            resources, limits=milli(resources.limits), requests=milli(resources.requests)
        ),
        liveness_probe=_probe(container.liveness_probe),
        readiness_probe=_probe(container.readiness_probe),
        startup_probe=_probe(container.startup_probe),
        lifecycle=_lifecycle(container.lifecycle),
    )
    return filled(
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
    return changed(variable, value_from=_field_selector(variable.value_from))


def _probe(probe: Probe | None) -> Probe | None:
    if probe is None:
        return None
    if probe.http_get is not None:
        probe = changed(probe, http_get=filled(probe.http_get, path="/", scheme="HTTP"))
    if probe.grpc is not None:
        probe = changed(probe, grpc=filled(probe.grpc, service=""))
    return changed(
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
