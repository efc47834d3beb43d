"""The pods behind a service: which there are, and where they listen.

Source: staging/src/k8s.io/endpointslice/utils.go, pkg/api/v1/endpoints/util.go and
staging/src/k8s.io/endpointslice/util/controller_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import datetime

from kcm.api.core_v1 import ObjectReference, Pod, Service, ServicePort
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.times import format_time
from kcm.helpers.pods import is_ready, is_terminal, ready_since
from kcm.reconcile.contract import Change, View

TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
HEADLESS = "service.kubernetes.io/headless"
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"


def has_backends(service: Service) -> bool:
    """Whether pods are looked for: those without a selector have endpoints of somebody else's."""
    return bool(service.spec.selector) and service.spec.type != "ExternalName"


def is_headless(service: Service) -> bool:
    """Whether it has no address of its own."""
    return service.spec.cluster_ip == "None"


def pods_of(service: Service, view: View) -> list[Pod]:
    """The pods that its selector chooses and that have an address and have not ended."""
    wanted = (service.spec.selector or {}).items()
    pods = view.lister(Pod).list(service.namespace)
    return [
        pod
        for pod in pods
        if wanted <= pod.labels.items() and pod.status.pod_ip and not is_terminal(pod)
    ]


def addresses_of(pod: Pod, family: int) -> list[str]:
    """Its addresses of IP version 4 or 6."""
    found = [one.ip for one in pod.status.pod_ips or () if one.ip] or [pod.status.pod_ip or ""]
    return [ip for ip in found if _version(ip) == family]


def _version(ip: str) -> int:
    try:
        return ipaddress.ip_address(ip).version
    except ValueError:
        return 0


def port_of(pod: Pod, port: ServicePort) -> int | None:
    """Where the pod listens for a port of the service; None when it does not."""
    target = port.target_port
    if not isinstance(target, str):
        return target or port.port
    sidecars = [c for c in pod.spec.init_containers or () if c.restart_policy == "Always"]
    for container in (*(pod.spec.containers or ()), *sidecars):
        for found in container.ports or ():
            if found.name == target and (found.protocol or "TCP") == (port.protocol or "TCP"):
                return int(found.container_port)
    return None


def hostname_of(pod: Pod, service: Service) -> str | None:
    """The name under which the pod is reached in the service's domain, if it asked for one."""
    spec = pod.spec
    if spec.hostname and spec.subdomain == service.name and pod.namespace == service.namespace:
        return spec.hostname
    return None


def reference_to(pod: Pod) -> ObjectReference:
    return ObjectReference(kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)


def changed_at(service: Service, pods: Iterable[Pod]) -> str:
    """When what the endpoints tell of last changed, as far as the objects say."""
    moments: list[datetime | None] = [service.metadata.creation_timestamp]
    for pod in pods:
        moments += [ready_since(pod), pod.metadata.deletion_timestamp]
    known = [moment for moment in moments if moment is not None]
    return format_time(max(known)) if known else ""


def services_of_pod(change: Change, view: View) -> Iterable[str]:
    """The services that choose the pod, or chose it, where the change matters to them."""
    old, new = change.old, change.new
    if isinstance(old, Pod) and isinstance(new, Pod):
        relabelled = old.metadata.labels != new.metadata.labels
        if not relabelled and _shown(old) == _shown(new):
            return
    states = [obj for obj in (old, new) if obj is not None]
    for service in view.lister(Service).list(change.object.namespace):
        if has_backends(service) and any(_chooses(service, obj) for obj in states):
            yield service.key


def _chooses(service: Service, obj: KubeObject) -> bool:
    return (service.spec.selector or {}).items() <= obj.labels.items()


def _shown(pod: Pod) -> tuple[object, ...]:
    """What endpoints tell of a pod; of one without an address nothing, on whatever node it is."""
    spec, status = pod.spec, pod.status
    if not status.pod_ip:
        return ()
    return (
        status.pod_ip, status.pod_ips, is_ready(pod), is_terminal(pod), pod.deleting,
        spec.node_name, spec.hostname, spec.subdomain,
    )  # fmt: skip
