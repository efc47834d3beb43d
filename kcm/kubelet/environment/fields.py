"""Values for fieldRef and resourceFieldRef: fields of a pod, resources of its containers.

Source: pkg/fieldpath/fieldpath.go, pkg/api/v1/resource/helpers.go and podFieldSelectorRuntimeValue
in pkg/kubelet/kubelet_pods.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.containers import Container
from kcm.api.core_v1.environment import ResourceFieldSelector
from kcm.apimachinery.quantity import Quantity
from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.lookups import PodLocation

_SUBSCRIPT = re.compile(r"(?P<path>.+)\['(?P<key>.*)'\]")

_FIELDS: dict[str, Callable[[Pod, PodLocation], str | None]] = {
    "metadata.name": lambda pod, _: pod.metadata.name,
    "metadata.namespace": lambda pod, _: pod.metadata.namespace,
    "metadata.uid": lambda pod, _: pod.metadata.uid,
    "metadata.labels": lambda pod, _: format_map(pod.metadata.labels),
    "metadata.annotations": lambda pod, _: format_map(pod.metadata.annotations),
    "spec.nodeName": lambda pod, _: pod.spec.node_name,
    "spec.serviceAccountName": lambda pod, _: pod.spec.service_account_name,
    "status.hostIP": lambda _, location: ",".join(location.host_ips[:1]),
    "status.hostIPs": lambda _, location: ",".join(location.host_ips),
    "status.podIP": lambda _, location: ",".join(location.pod_ips[:1]),
    "status.podIPs": lambda _, location: ",".join(location.pod_ips),
}

_SUBSCRIPTED: dict[str, Callable[[Pod], Mapping[str, str] | None]] = {
    "metadata.labels": lambda pod: pod.metadata.labels,
    "metadata.annotations": lambda pod: pod.metadata.annotations,
}

_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_HUGE = "hugepages-"


def field_value(path: str, pod: Pod, location: PodLocation) -> str:
    """Returns the value of a field as text. Raises ContainerConfigError for an unsupported path."""
    if match := _SUBSCRIPT.fullmatch(path):
        get_values = _SUBSCRIPTED.get(match["path"])
        if get_values is None:
            raise ContainerConfigError(f'fieldPath "{path}" does not support subscript')
        return (get_values(pod) or {}).get(match["key"], "")
    if path not in _FIELDS:
        raise ContainerConfigError(f"unsupported fieldPath: {path}")
    return _FIELDS[path](pod, location) or ""


def format_map(values: Mapping[str, str] | None) -> str:
    """Returns lines of `key="value"`, sorted by key. The quoting is JSON's, nearly that of Go."""
    lines = [
        f"{key}={json.dumps(value, ensure_ascii=False)}"
        for key, value in sorted((values or {}).items())
    ]
    return "\n".join(lines)


def resource_value(
    ref: ResourceFieldSelector, pod: Pod, container: Container | None, location: PodLocation
) -> str:
    """Returns an amount of a resource in units of the divisor, rounded up.

    A limit that is not set counts as the node's allocatable amount. `container` is the container
    that has the reference; the reference may name another one. Raises ContainerConfigError for an
    unknown container or an unsupported resource.
    """
    name = ref.container_name
    chosen = _container(pod, name) if name else container
    if chosen is None:
        raise ContainerConfigError(f"container {name} not found")
    kind, _, resource = ref.resource.partition(".")
    known = resource in _RESOURCES or resource.startswith(_HUGE)
    if kind not in ("limits", "requests") or not known:
        raise ContainerConfigError(f"unsupported container resource : {ref.resource}")
    amount = _amount(chosen, kind, resource, location)
    return str(-(-amount.nanos // _unit(ref.divisor or Quantity(), resource)))


def _amount(container: Container, kind: str, resource: str, location: PodLocation) -> Quantity:
    amounts = getattr(container.resources, kind) or {}
    amount: Quantity = amounts.get(resource, Quantity())
    if kind == "limits" and not amount and resource in _RESOURCES:
        return location.allocatable.get(resource, amount)
    return amount


def _unit(divisor: Quantity, resource: str) -> int:
    """Returns the divisor in billionths. Without a divisor, it is one core or one byte."""
    if not divisor:
        return 10**9
    return divisor.milli_value() * 10**6 if resource == "cpu" else divisor.value() * 10**9


def _container(pod: Pod, name: str) -> Container | None:
    containers = [*pod.spec.containers, *(pod.spec.init_containers or [])]
    return next((spec for spec in containers if spec.name == name), None)
