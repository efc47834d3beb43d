"""The states of pods, and building pods from templates.

Source: pkg/api/v1/pod/util.go and pkg/controller/controller_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import datetime

from kcm.api.core_v1 import (
    Container,
    ObjectReference,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    Service,
    ServicePort,
)
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta, format_time
from kcm.apimachinery.ownership import new_controller_ref
from kcm.reconcile.contract import Change, View

_TERMINAL = frozenset({"Succeeded", "Failed"})


def is_terminal(pod: Pod) -> bool:
    """Reports whether the pod's phase is Succeeded or Failed."""
    return pod.status.phase in _TERMINAL


def is_active(pod: Pod) -> bool:
    """Reports whether the pod is neither terminal nor being deleted, and so counts as a replica."""
    return pod.status.phase not in _TERMINAL and pod.metadata.deletion_timestamp is None


def is_terminating(pod: Pod) -> bool:
    """Reports whether the pod is being deleted and not terminal yet."""
    return pod.metadata.deletion_timestamp is not None and pod.status.phase not in _TERMINAL


def condition_of(status: PodStatus, type: str) -> PodCondition | None:
    """Returns the condition of this type, or None."""
    for condition in status.conditions or ():
        if condition.type == type:
            return condition
    return None


def with_condition(pod: Pod, condition: PodCondition, now: datetime) -> Pod:
    """Returns the pod with this condition, observed of the pod's generation.

    Its transition time is that of the old condition if the status is the same, otherwise `now`.
    """
    status, before = pod.status, condition_of(pod.status, condition.type)
    unchanged = before is not None and before.status == condition.status
    since = before.last_transition_time if before and unchanged else now.replace(microsecond=0)
    others = [c for c in status.conditions or () if c.type != condition.type]
    new = condition.replace(last_transition_time=since, observed_generation=pod.metadata.generation)
    return pod.with_status(status.replace(conditions=[*others, new]))


def is_ready(pod: Pod) -> bool:
    """Reports whether the pod's condition Ready is True."""
    ready = condition_of(pod.status, "Ready")
    return ready is not None and ready.status == "True"


def ready_since(pod: Pod) -> datetime | None:
    """Returns when the pod became ready, None if it is not ready or the time is unknown."""
    ready = condition_of(pod.status, "Ready")
    return ready.last_transition_time if ready is not None and ready.status == "True" else None


def available_in(pod: Pod, min_ready_seconds: int, now: datetime) -> float | None:
    """Returns the seconds until a ready pod counts as available, 0 if it already does.

    Returns None if time alone will not make it available.
    """
    if not min_ready_seconds:
        return 0.0
    since = ready_since(pod)
    if since is None:
        return None
    left = (since - now).total_seconds() + min_ready_seconds
    # As upstream, the time must have passed, not just been reached.
    return 0.0 if left < 0 else max(left, 0.001)


def next_availability(ready: Iterable[Pod], min_ready_seconds: int, now: datetime) -> float | None:
    """Returns the seconds until the next of these ready pods counts as available.

    Returns None if no pod will become available by time alone.
    """
    waits = (available_in(pod, min_ready_seconds, now) for pod in ready)
    return min((wait for wait in waits if wait), default=None)


def pod_from_template(template: PodTemplateSpec, owner: KubeObject) -> Pod:
    """Returns a new pod of `owner` with a copy of the template's spec. Its name is generated."""
    meta = template.metadata
    return Pod(
        metadata=ObjectMeta(
            generate_name=f"{owner.name}-",
            namespace=owner.metadata.namespace,
            labels=dict(meta.labels) if meta.labels else None,
            annotations=dict(meta.annotations) if meta.annotations else None,
            finalizers=list(meta.finalizers) if meta.finalizers else None,
            owner_references=[new_controller_ref(owner)],
        ),
        spec=template.spec.model_copy(deep=True),
    )


def list_containers(spec: PodSpec) -> list[Container]:
    """Returns all containers of a pod: main, init and ephemeral ones."""
    return [*spec.containers, *(spec.init_containers or ()), *(spec.ephemeral_containers or ())]


def is_sidecar(container: Container) -> bool:
    """Reports whether an init container is a sidecar (restartPolicy Always)."""
    return container.restart_policy == "Always"


def sidecar_place(pod: Pod | None, name: str) -> int | None:
    """Returns the index of a sidecar among the pod's init containers, None if it is no sidecar."""
    inits = (pod.spec.init_containers or ()) if pod else ()
    places = (n for n, init in enumerate(inits) if init.name == name and is_sidecar(init))
    return next(places, None)


def most_restarts(pod: Pod) -> tuple[int, int]:
    """Returns the highest restart counts of a main container and of a sidecar."""
    containers = max((c.restart_count for c in pod.status.container_statuses or ()), default=0)
    sidecars = {c.name for c in pod.spec.init_containers or () if is_sidecar(c)}
    counts = (
        c.restart_count
        for c in pod.status.init_container_statuses or ()
        if sidecars and c.name in sidecars
    )
    return containers, max(counts, default=0)


# --- The pods that a Service selects, and their addresses and ports.
#
# Source: staging/src/k8s.io/endpointslice/utils.go, pkg/api/v1/endpoints/util.go and
# staging/src/k8s.io/endpointslice/util/controller_utils.go, Kubernetes 1.33.


TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
HEADLESS = "service.kubernetes.io/headless"
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
LEADER_RECORD = "control-plane.alpha.kubernetes.io/leader"  # of Endpoints for leader election


def has_backends(service: Service) -> bool:
    """Reports whether the Service selects pods. Otherwise its endpoints are managed by others."""
    return bool(service.spec.selector) and service.spec.type != "ExternalName"


def is_headless(service: Service) -> bool:
    """Reports whether the Service has no cluster IP."""
    return service.spec.cluster_ip == "None"


def pods_of(service: Service, view: View) -> list[Pod]:
    """Returns the selected pods that have an IP address and are not terminal."""
    wanted = (service.spec.selector or {}).items()
    pods = view.lister(Pod).list(service.namespace)
    return [
        pod
        for pod in pods
        if wanted <= pod.labels.items() and pod.status.pod_ip and not is_terminal(pod)
    ]


def addresses_of(pod: Pod, family: int) -> list[str]:
    """Returns the pod's addresses of an IP version, 4 or 6."""
    addresses = [one.ip for one in pod.status.pod_ips or () if one.ip] or [pod.status.pod_ip or ""]
    return [ip for ip in addresses if _version(ip) == family]


def _version(ip: str) -> int:
    try:
        return ipaddress.ip_address(ip).version
    except ValueError:
        return 0


def port_of(pod: Pod, port: ServicePort) -> int | None:
    """Returns the pod's port number for a port of the Service.

    Returns None if the pod has no port of the name in targetPort.
    """
    target = port.target_port
    if not isinstance(target, str):
        return target or port.port
    sidecars = [c for c in pod.spec.init_containers or () if is_sidecar(c)]
    for container in (*(pod.spec.containers or ()), *sidecars):
        for container_port in container.ports or ():
            if container_port.name == target and (container_port.protocol or "TCP") == (
                port.protocol or "TCP"
            ):
                return int(container_port.container_port)
    return None


def hostname_of(pod: Pod, service: Service) -> str | None:
    """Returns the host name of the pod in the Service's domain, or None if it has none."""
    spec = pod.spec
    if spec.hostname and spec.subdomain == service.name and pod.namespace == service.namespace:
        return spec.hostname
    return None


def reference_to(pod: Pod) -> ObjectReference:
    return ObjectReference(kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)


def last_change_time(service: Service, pods: Iterable[Pod]) -> str:
    """Returns the latest time in the objects at which endpoints may have changed, as RFC 3339
    text.
    """
    moments: list[datetime | None] = [service.metadata.creation_timestamp]
    for pod in pods:
        moments += [ready_since(pod), pod.metadata.deletion_timestamp]
    told = [moment for moment in moments if moment is not None]
    return format_time(max(told)) if told else ""


def services_of_pod(change: Change, view: View) -> Iterable[str]:
    """Yields the keys of the Services that select the pod, or did, if the change affects them."""
    old, new = change.old, change.new
    if isinstance(old, Pod) and isinstance(new, Pod):
        relabelled = old.metadata.labels != new.metadata.labels
        if not relabelled and _endpoint_facts(old) == _endpoint_facts(new):
            return
    states = [obj for obj in (old, new) if obj is not None]
    for service in view.lister(Service).list(change.object.namespace):
        if has_backends(service) and any(_chooses(service, obj) for obj in states):
            yield service.key


def _chooses(service: Service, obj: KubeObject) -> bool:
    return (service.spec.selector or {}).items() <= obj.labels.items()


def _endpoint_facts(pod: Pod) -> tuple[object, ...]:
    """Returns the fields of a pod that its endpoints depend on, () without an IP address."""
    spec, status = pod.spec, pod.status
    if not status.pod_ip:
        return ()
    return (
        status.pod_ip, status.pod_ips, is_ready(pod), is_terminal(pod), pod.deleting,
        spec.node_name, spec.hostname, spec.subdomain,
    )  # fmt: skip
