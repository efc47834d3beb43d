"""The pods that a Service selects, and their addresses and ports.

Source: staging/src/k8s.io/endpointslice/utils.go, pkg/api/v1/endpoints/util.go and
staging/src/k8s.io/endpointslice/util/controller_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import datetime

from kcm.api.core_v1 import ObjectReference, Pod, Service, ServicePort
from kcm.apimachinery.meta_v1 import KubeObject, format_time
from kcm.helpers.pods import is_ready, is_sidecar, is_terminal, ready_since
from kcm.reconcile.contract import Change, View

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
    known = [moment for moment in moments if moment is not None]
    return format_time(max(known)) if known else ""


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
