"""Rules for containers, their ports, variables, probes and resources.

Source: pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kcm.api import names
from kcm.api.core_v1 import (
    Container,
    ContainerPort,
    EnvVar,
    Probe,
    ResourceRequirements,
    VolumeMount,
)
from kcm.api.quantity import Quantity, ResourceList
from kcm.api.validation.meta import label_key
from kcm.api.validation.report import (
    NOT_NEGATIVE,
    Faults,
    duplicate,
    forbidden,
    invalid,
    invalid_all,
    not_found,
    not_negative,
    one_of,
    required,
)

_PORT_RANGE = "must be between 1 and 65535, inclusive"
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
PROTOCOLS = ("SCTP", "TCP", "UDP")
_SCHEMES = ("HTTP", "HTTPS")
_IN_CONTAINERS = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD = _IN_CONTAINERS | {"storage", "pods", "services", "secrets", "configmaps"}
_HUGE_PAGES = "hugepages-"
_NATIVE_DOMAIN = "kubernetes.io/"


def containers(found: Sequence[Container], path: str, volumes: frozenset[str]) -> Faults:
    """The main containers: at least one, no name twice, no host port twice."""
    if not found:
        return [required(path)]
    faults: Faults = []
    seen: set[str] = set()
    for index, container in enumerate(found):
        where = f"{path}[{index}]"
        faults += _container(container, where, volumes)
        if container.name in seen:
            faults.append(duplicate(f"{where}.name", container.name))
        seen.add(container.name)
        faults += _probes(container, where)
        if container.restart_policy is not None:
            detail = "may not be set for non-init containers"
            faults.append(forbidden(f"{where}.restartPolicy", detail))
    return faults + _host_port_conflicts(found, path)


def init_containers(
    found: Sequence[Container], path: str, volumes: frozenset[str], taken: Iterable[str]
) -> Faults:
    """Init containers; one that restarts always is a sidecar and may have probes."""
    faults: Faults = []
    seen = set(taken)
    for index, container in enumerate(found):
        where = f"{path}[{index}]"
        faults += _container(container, where, volumes)
        if container.name in seen:
            faults.append(duplicate(f"{where}.name", container.name))
        seen.add(container.name)
        sidecar = container.restart_policy == "Always"
        if container.restart_policy is not None and not sidecar:
            faults += one_of(f"{where}.restartPolicy", container.restart_policy, ("Always",))
        faults += _probes(container, where) if sidecar else _no_probes(container, where)
        faults += _host_port_conflicts([container], path)
    return faults


def _no_probes(container: Container, path: str) -> Faults:
    detail = "may not be set for init containers without restartPolicy=Always"
    probes = {
        "lifecycle": container.lifecycle,
        "livenessProbe": container.liveness_probe,
        "readinessProbe": container.readiness_probe,
        "startupProbe": container.startup_probe,
    }
    return [forbidden(f"{path}.{name}", detail) for name, set_ in probes.items() if set_]


def _container(container: Container, path: str, volumes: frozenset[str]) -> Faults:
    faults: Faults = []
    if not container.name:
        faults.append(required(f"{path}.name"))
    else:
        faults += invalid_all(f"{path}.name", container.name, names.label_faults(container.name))
    if not container.image:
        faults.append(required(f"{path}.image"))
    policy = container.termination_message_policy
    return [
        *faults,
        *one_of(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES),
        *_ports(container.ports or (), f"{path}.ports"),
        *_env(container.env or (), f"{path}.env"),
        *_mounts(container.volume_mounts or (), f"{path}.volumeMounts", volumes),
        *one_of(f"{path}.imagePullPolicy", container.image_pull_policy, _PULL_POLICIES),
        *resource_requirements(container.resources, f"{path}.resources"),
    ]


def image_spaces(found: Iterable[Container], path: str) -> Faults:
    """Images of pods may not have spaces around them; those of templates may."""
    detail = "must not have leading or trailing whitespace"
    return [
        invalid(f"{path}[{index}].image", container.image, detail)
        for index, container in enumerate(found)
        if container.image and container.image != container.image.strip()
    ]


def _ports(ports: Iterable[ContainerPort], path: str) -> Faults:
    faults: Faults = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        if port.name:
            complaints = names.port_name_faults(port.name)
            faults += invalid_all(f"{where}.name", port.name, complaints)
            if not complaints and port.name in seen:
                faults.append(duplicate(f"{where}.name", port.name))
            seen.add(port.name)
        if port.container_port == 0:
            faults.append(required(f"{where}.containerPort"))
        else:
            faults += port_number(port.container_port, f"{where}.containerPort")
        if port.host_port:
            faults += port_number(port.host_port, f"{where}.hostPort")
        faults += one_of(f"{where}.protocol", port.protocol, PROTOCOLS)
    return faults


def port_number(number: int, path: str) -> Faults:
    return [] if 1 <= number <= 65535 else [invalid(path, number, _PORT_RANGE)]


def _host_port_conflicts(found: Iterable[Container], path: str) -> Faults:
    faults: Faults = []
    seen: set[tuple[str | None, str | None, int]] = set()
    for index, container in enumerate(found):
        for at, port in enumerate(container.ports or ()):
            if not port.host_port:
                continue
            claim = (port.protocol, port.host_ip, port.host_port)
            if claim in seen:
                shown = f"{port.protocol}/{port.host_ip or ''}/{port.host_port}"
                faults.append(duplicate(f"{path}[{index}].ports[{at}].hostPort", shown))
            seen.add(claim)
    return faults


def _env(variables: Iterable[EnvVar], path: str) -> Faults:
    faults: Faults = []
    for index, variable in enumerate(variables):
        where = f"{path}[{index}]"
        if not variable.name:
            faults.append(required(f"{where}.name"))
        else:
            complaints = names.env_var_faults(variable.name)
            faults += invalid_all(f"{where}.name", variable.name, complaints)
        if variable.value_from is not None:
            faults += _env_source(variable, f"{where}.valueFrom")
    return faults


_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")


def _env_source(variable: EnvVar, path: str) -> Faults:
    sources = [name for name in _ENV_SOURCES if (variable.value_from or {}).get(name) is not None]
    if not sources:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or "
            "`secretKeyRef`"
        )
        return [invalid(path, "", detail)]
    if variable.value:
        return [invalid(path, "", "may not be specified when `value` is not empty")]
    if len(sources) > 1:
        return [invalid(path, "", "may not have more than one field specified at a time")]
    return []


def _mounts(mounts: Iterable[VolumeMount], path: str, volumes: frozenset[str]) -> Faults:
    faults: Faults = []
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        where = f"{path}[{index}]"
        if not mount.name:
            faults.append(required(f"{where}.name"))
        elif mount.name not in volumes:
            faults.append(not_found(f"{where}.name", mount.name))
        if not mount.mount_path:
            faults.append(required(f"{where}.mountPath"))
        if mount.mount_path in seen:
            faults.append(invalid(f"{where}.mountPath", mount.mount_path, "must be unique"))
        seen.add(mount.mount_path)
    return faults


def _probes(container: Container, path: str) -> Faults:
    faults = [
        *_probe(container.liveness_probe, f"{path}.livenessProbe"),
        *_probe(container.readiness_probe, f"{path}.readinessProbe"),
        *_probe(container.startup_probe, f"{path}.startupProbe"),
    ]
    readiness = container.readiness_probe
    if readiness is not None and readiness.termination_grace_period_seconds is not None:
        where = f"{path}.readinessProbe.terminationGracePeriodSeconds"
        value = readiness.termination_grace_period_seconds
        faults.append(invalid(where, value, "must not be set for readinessProbes"))
    for name, probe in (
        ("livenessProbe", container.liveness_probe),
        ("startupProbe", container.startup_probe),
    ):
        if probe is not None and (probe.success_threshold or 1) != 1:
            where = f"{path}.{name}.successThreshold"
            faults.append(invalid(where, probe.success_threshold, "must be 1"))
    return faults


def _probe(probe: Probe | None, path: str) -> Faults:
    if probe is None:
        return []
    faults = _handler(probe, path)
    for name, value in (
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ):
        faults += not_negative(f"{path}.{name}", value)
    grace = probe.termination_grace_period_seconds
    if grace is not None and grace <= 0:
        where = f"{path}.terminationGracePeriodSeconds"
        faults.append(invalid(where, grace, "must be greater than 0"))
    return faults


def _handler(probe: Probe, path: str) -> Faults:
    faults: Faults = []
    handlers = {
        "exec": probe.exec,
        "httpGet": probe.http_get,
        "tcpSocket": probe.tcp_socket,
        "grpc": probe.grpc,
    }
    used = [name for name, handler in handlers.items() if handler is not None]
    if not used:
        return [required(path, "must specify a handler type")]
    for name in used[1:]:
        faults.append(forbidden(f"{path}.{name}", "may not specify more than 1 handler type"))
    if probe.exec is not None and not probe.exec.command:
        faults.append(required(f"{path}.exec.command"))
    if probe.http_get is not None:
        if not probe.http_get.path:
            faults.append(required(f"{path}.httpGet.path"))
        faults += port_or_name(probe.http_get.port, f"{path}.httpGet.port")
        faults += one_of(f"{path}.httpGet.scheme", probe.http_get.scheme, _SCHEMES)
    if probe.tcp_socket is not None:
        faults += port_or_name(probe.tcp_socket.port, f"{path}.tcpSocket.port")
    if probe.grpc is not None:
        faults += port_number(probe.grpc.port, f"{path}.grpc.port")
    return faults


def port_or_name(port: int | str, path: str) -> Faults:
    if isinstance(port, int):
        return port_number(port, path)
    return invalid_all(path, port, names.port_name_faults(port))


def resource_requirements(resources: ResourceRequirements, path: str) -> Faults:
    """Limits and requests: known names, not negative, requests within limits."""
    limits, requests = resources.limits or {}, resources.requests or {}
    if not limits and not requests:
        return []
    faults: Faults = []
    for name, amount in limits.items():
        faults += _amount(name, amount, f"{path}.limits[{name}]")
    for name, amount in requests.items():
        faults += _amount(name, amount, f"{path}.requests[{name}]")
        faults += _within_limit(name, amount, limits, path)
    return faults


def _amount(name: str, amount: Quantity, path: str) -> Faults:
    faults = resource_name(name, path)
    if amount.sign() < 0:
        faults.append(invalid(path, str(amount), NOT_NEGATIVE))
    if not is_native(name) and amount.nanos % 10**9:
        faults.append(invalid(path, str(amount), "must be an integer"))
    return faults


def _within_limit(name: str, amount: Quantity, limits: ResourceList, path: str) -> Faults:
    overcommit = is_native(name) and not name.startswith(_HUGE_PAGES)
    limit = limits.get(name)
    if limit is None:
        detail = "Limit must be set for non overcommitable resources"
        return [] if overcommit else [required(f"{path}.limits", detail)]
    if not overcommit and amount != limit:
        detail = f"must be equal to {name} limit of {limit}"
        return [invalid(f"{path}.requests", str(amount), detail)]
    if amount > limit:
        detail = f"must be less than or equal to {name} limit of {limit}"
        return [invalid(f"{path}.requests", str(amount), detail)]
    return []


def is_native(name: str) -> bool:
    """Whether a resource is Kubernetes' own rather than a vendor's."""
    return "/" not in name or _NATIVE_DOMAIN in name


_EXTENDED_DETAIL = "doesn't follow extended resource name standard"


def resource_name(name: str, path: str, *, in_container: bool = True) -> Faults:
    """What containers ask for, or what any object may."""
    faults = label_key(name, path)
    if faults or name in _IN_CONTAINERS:
        return faults
    if "/" not in name:
        if name.startswith(_HUGE_PAGES):
            return []
        if name not in _STANDARD:
            detail = "must be a standard resource type or fully qualified"
            faults.append(invalid(path, name, detail))
        if in_container:
            faults.append(invalid(path, name, "must be a standard resource for containers"))
        return faults
    if in_container and not is_native(name) and re.match("requests\\.", name):
        faults.append(invalid(path, name, _EXTENDED_DETAIL))
    return faults
