"""Validation of containers.

Source: pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kcm.api.core_v1 import Container, ContainerPort, EphemeralContainer
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    forbidden,
    invalid,
    invalid_all,
    not_found,
    one_of,
    required,
)
from kcm.kinds.validation.podspec import environment, security
from kcm.kinds.validation.podspec.claims import container_claims
from kcm.kinds.validation.podspec.context import PodContext
from kcm.kinds.validation.podspec.handlers import lifecycle, port_number, probes
from kcm.kinds.validation.podspec.resources import requirements, resize_policies
from kcm.kinds.validation.podspec.restart_rules import restart_policy
from kcm.kinds.validation.podspec.volumes import mounts
from kcm.kinds.validation.podspec.volumes.sources import PULL_POLICIES

_MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
PROTOCOLS = ("SCTP", "TCP", "UDP")


def containers(main: Sequence[Container], path: str, pod: PodContext) -> Faults:
    """Checks the main containers: at least one, with unique names and host ports."""
    if not main:
        return [required(path)]
    faults: Faults = []
    seen: set[str] = set()
    for index, container in enumerate(main):
        where = f"{path}[{index}]"
        faults += _container(container, where, pod)
        if container.name in seen:
            faults.append(duplicate(f"{where}.name", container.name))
        seen.add(container.name)
        faults += _health(container, where, pod)
        faults += restart_policy(container, where)
    return faults + _host_port_conflicts(main, path)


def init_containers(
    init: Sequence[Container], path: str, pod: PodContext, taken: Iterable[str]
) -> Faults:
    """Checks init containers. One with restartPolicy Always is a sidecar and may have probes.

    `taken` are the names of the main containers.
    """
    faults: Faults = []
    seen = set(taken)
    for index, container in enumerate(init):
        where = f"{path}[{index}]"
        faults += _container(container, where, pod)
        if container.name in seen:
            faults.append(duplicate(f"{where}.name", container.name))
        seen.add(container.name)
        sidecar = container.restart_policy == "Always"
        faults += restart_policy(container, where)
        faults += _health(container, where, pod) if sidecar else _no_health(container, where)
        faults += _host_port_conflicts([container], path)
    return faults


def ephemeral_containers(
    ephemeral: Sequence[EphemeralContainer], path: str, pod: PodContext, others: Iterable[str]
) -> Faults:
    """Checks ephemeral containers, which may have no ports, probes or resources.

    `others` are the names of the pod's other containers.
    """
    faults: Faults = []
    others = frozenset(others)
    seen = set(others)
    for index, container in enumerate(ephemeral):
        where = f"{path}[{index}]"
        faults += _container(container, where, pod)
        faults += image_spaces([container], path)
        if container.name in seen:
            faults.append(duplicate(f"{where}.name", container.name))
        seen.add(container.name)
        target = container.target_container_name
        if target and target not in others:
            faults.append(not_found(f"{where}.targetContainerName", target))
        faults += _not_ephemeral(container, where)
    return faults


_NOT_EPHEMERAL = (
    "ports", "resources", "liveness_probe", "readiness_probe", "startup_probe", "lifecycle",
    "resize_policy", "restart_policy", "restart_policy_rules",
)  # fmt: skip


def _not_ephemeral(container: EphemeralContainer, path: str) -> Faults:
    detail = "cannot be set for an Ephemeral Container"
    empty, fields = EphemeralContainer(), type(container).model_fields
    faults = [
        forbidden(f"{path}.{fields[field].alias}", detail)
        for field in _NOT_EPHEMERAL
        if getattr(container, field) != getattr(empty, field)
    ]
    for index, mount in enumerate(container.volume_mounts or ()):
        for field, value in (("subPath", mount.sub_path), ("subPathExpr", mount.sub_path_expr)):
            if value:
                faults.append(forbidden(f"{path}.volumeMounts[{index}].{field}", detail))
    return faults


def _health(container: Container, path: str, pod: PodContext) -> Faults:
    """Checks lifecycle hooks and probes."""
    hooks = container.lifecycle
    faults = lifecycle(hooks, f"{path}.lifecycle", pod) if hooks is not None else []
    return faults + probes(container, path)


def _no_health(container: Container, path: str) -> Faults:
    detail = "may not be set for init containers without restartPolicy=Always"
    probes = {
        "lifecycle": container.lifecycle,
        "livenessProbe": container.liveness_probe,
        "readinessProbe": container.readiness_probe,
        "startupProbe": container.startup_probe,
    }
    return [forbidden(f"{path}.{name}", detail) for name, set_ in probes.items() if set_]


def _container(container: Container, path: str, pod: PodContext) -> Faults:
    faults: Faults = []
    if not container.name:
        faults.append(required(f"{path}.name"))
    else:
        faults += invalid_all(f"{path}.name", container.name, names.label_faults(container.name))
    if not container.image:
        faults.append(required(f"{path}.image"))
    policy = container.termination_message_policy
    resize = container.resize_policy or ()
    return [
        *faults,
        *one_of(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES),
        *_ports(container.ports or (), f"{path}.ports"),
        *environment.variables(container.env or (), f"{path}.env"),
        *environment.whole_sources(container.env_from or (), f"{path}.envFrom"),
        *mounts.volume_mounts(container, f"{path}.volumeMounts", pod),
        *mounts.volume_devices(container, f"{path}.volumeDevices", pod),
        *one_of(f"{path}.imagePullPolicy", container.image_pull_policy, PULL_POLICIES),
        *requirements(container.resources, f"{path}.resources"),
        *container_claims(
            container.resources.claims or (), f"{path}.resources.claims", pod.claim_names
        ),
        *resize_policies(resize, f"{path}.resizePolicy", pod.restart_policy),
        *security.of_container(container.security_context, f"{path}.securityContext", pod),
    ]


def image_spaces(checked: Iterable[Container], path: str) -> Faults:
    """Checks that images have no spaces around them. It applies to pods, not to templates."""
    detail = "must not have leading or trailing whitespace"
    return [
        invalid(f"{path}[{index}].image", container.image, detail)
        for index, container in enumerate(checked)
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


def _host_port_conflicts(checked: Iterable[Container], path: str) -> Faults:
    faults: Faults = []
    seen: set[tuple[str | None, str | None, int]] = set()
    for index, container in enumerate(checked):
        for at, port in enumerate(container.ports or ()):
            if not port.host_port:
                continue
            claim = (port.protocol, port.host_ip, port.host_port)
            if claim in seen:
                shown = f"{port.protocol}/{port.host_ip or ''}/{port.host_port}"
                faults.append(duplicate(f"{path}[{index}].ports[{at}].hostPort", shown))
            seen.add(claim)
    return faults
