"""A container's environment variables.

They come from Services, then from envFrom, then from env; a later variable replaces an earlier one
of its name. A value may refer to variables that are declared before it.

Source: makeEnvironmentVariables in pkg/kubelet/kubelet_pods.go, Kubernetes 1.33. Departure: the
variables are in the order of their declaration; upstream's are in that of a Go map.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kcm.api.core_v1 import (
    ConfigMap,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Secret,
    Service,
)
from kcm.api.core_v1.containers import Container
from kcm.api.core_v1.environment import (
    ConfigMapKeySelector,
    EnvFromSource,
    EnvVarSource,
    FileKeySelector,
    ResourceFieldSelector,
    SecretKeySelector,
)
from kcm.api.node_v1 import RuntimeClass
from kcm.apimachinery.quantity import Quantity, ResourceList
from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.env_files import find_value
from kcm.kubelet.environment.expansion import expand
from kcm.kubelet.environment.services import service_variables

ReadFile = Callable[[str, str], str]
"""Returns the text of a file, by the name of the pod's volume and the path there. Raises
ContainerConfigError."""

# --- The interface through which environments and volumes get objects other than the pod itself.


class Lookups(Protocol):
    """Reads the objects that a pod's spec refers to."""

    def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        """Returns the ConfigMap, or None if there is none. May raise Temporary."""
        ...

    def secret(self, namespace: str, name: str) -> Secret | None:
        """Returns the Secret, or None if there is none. May raise Temporary."""
        ...

    def persistent_volume_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Returns the claim, or None if there is none. May raise Temporary."""
        ...

    def persistent_volume(self, name: str) -> PersistentVolume | None:
        """Returns the volume, or None if there is none. May raise Temporary."""
        ...

    def runtime_class(self, name: str) -> RuntimeClass | None:
        """Returns the RuntimeClass, or None if there is none. May raise Temporary."""
        ...

    def services(self) -> Iterable[Service]:
        """Returns the services of all namespaces. May raise Temporary."""
        ...

    def service_account_token(self, pod: Pod, audience: str, seconds: int) -> str:
        """Returns a token of the pod's service account for `audience`, valid for `seconds` seconds.

        The audience "" is that of the API server. May raise Temporary.
        """
        ...


@dataclass(frozen=True)
class PodLocation:
    """The addresses of a pod and its node, and the node's resources, for the downward API."""

    pod_ips: tuple[str, ...] = ()
    host_ips: tuple[str, ...] = ()
    allocatable: ResourceList = field(default_factory=dict)  # the node's; limits default to it


# --- Values for fieldRef and resourceFieldRef: fields of a pod, resources of its containers.
#
# Source: pkg/fieldpath/fieldpath.go, pkg/api/v1/resource/helpers.go and
# podFieldSelectorRuntimeValue in pkg/kubelet/kubelet_pods.go, Kubernetes 1.33.


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

    A limit that is not set counts as the pod's, and without one as the node's allocatable amount.
    `container` is the container that has the reference; the reference may name another one. Raises
    ContainerConfigError for an unknown container or an unsupported resource.
    """
    name = ref.container_name
    chosen = _container(pod, name) if name else container
    if chosen is None:
        raise ContainerConfigError(f"container {name} not found")
    kind, _, resource = ref.resource.partition(".")
    is_supported = resource in _RESOURCES or resource.startswith(_HUGE)
    if kind not in ("limits", "requests") or not is_supported:
        raise ContainerConfigError(f"unsupported container resource : {ref.resource}")
    amount = _amount(pod, chosen, kind, resource, location)
    return str(-(-amount.nanos // _unit(ref.divisor or Quantity(), resource)))


def _amount(
    pod: Pod, container: Container, kind: str, resource: str, location: PodLocation
) -> Quantity:
    amounts = getattr(container.resources, kind) or {}
    amount: Quantity = amounts.get(resource, Quantity())
    if kind == "limits" and not amount and resource in _RESOURCES:
        of_pod = (pod.spec.resources.limits if pod.spec.resources else None) or {}
        return of_pod.get(resource) or location.allocatable.get(resource, amount)
    return amount


def _unit(divisor: Quantity, resource: str) -> int:
    """Returns the divisor in billionths. Without a divisor, it is one core or one byte."""
    if not divisor:
        return 10**9
    return divisor.milli_value() * 10**6 if resource == "cpu" else divisor.value() * 10**9


def _container(pod: Pod, name: str) -> Container | None:
    containers = [*pod.spec.containers, *(pod.spec.init_containers or [])]
    return next((spec for spec in containers if spec.name == name), None)


def make_environment(
    pod: Pod,
    container: Container,
    lookups: Lookups,
    location: PodLocation,
    *,
    read_file: ReadFile | None = None,
) -> dict[str, str]:
    """Returns the container's environment variables. `read_file` reads files on the pod's volumes.

    Raises ContainerConfigError if a reference that is not optional refers to nothing.
    """
    services = service_variables(
        lookups.services(), pod.metadata.namespace or "", pod.spec.enable_service_links
    )
    variables: dict[str, str] = {}
    for source in container.env_from or []:
        prefix = source.prefix or ""
        values = _all_of(source, pod, lookups)
        variables.update({f"{prefix}{key}": value for key, value in values.items()})
    for variable in container.env or []:
        if variable.value or not variable.value_from:
            variables[variable.name] = expand(variable.value or "", {**services, **variables}.get)
        else:
            sources = _Sources(pod, container, lookups, location, read_file)
            value = sources.value(variable.name, variable.value_from)
            variables.update({} if value is None else {variable.name: value})
    return {**{name: services[name] for name in services if name not in variables}, **variables}


@dataclass(frozen=True)
class _Sources:
    """Reads the values of variables from their sources."""

    pod: Pod
    container: Container
    lookups: Lookups
    location: PodLocation
    read_file: ReadFile | None

    def value(self, name: str, source: EnvVarSource) -> str | None:
        """Returns the variable's value, or None if an optional reference refers to nothing."""
        if source.field_ref is not None:
            return field_value(source.field_ref.field_path, self.pod, self.location)
        if source.resource_field_ref is not None:
            return resource_value(
                source.resource_field_ref, self.pod, self.container, self.location
            )
        if source.config_map_key_ref is not None:
            return _key_of("ConfigMap", source.config_map_key_ref, self.pod, self.lookups)
        if source.secret_key_ref is not None:
            return _key_of("Secret", source.secret_key_ref, self.pod, self.lookups)
        if source.file_key_ref is not None and self.read_file is not None:
            return _key_in_file(source.file_key_ref, self.read_file)
        raise ContainerConfigError(f"the source of variable {name} is not supported")


def _key_of(
    kind: str, ref: ConfigMapKeySelector | SecretKeySelector, pod: Pod, lookups: Lookups
) -> str | None:
    values = _read(kind, ref, pod, lookups)
    if values is None:
        return None
    if ref.key not in values and not ref.optional:
        where = f"{pod.metadata.namespace}/{ref.name or ''}"
        raise ContainerConfigError(f"couldn't find key {ref.key} in {kind} {where}")
    return values.get(ref.key)


def _key_in_file(ref: FileKeySelector, read_file: ReadFile) -> str | None:
    value = find_value(read_file(ref.volume_name, ref.path), ref.key)
    if value or ref.optional:
        return value or None
    raise ContainerConfigError(
        f'environment variable key "{ref.key}" not found in file "{ref.path}" of volume '
        f'"{ref.volume_name}"'
    )


def _all_of(source: EnvFromSource, pod: Pod, lookups: Lookups) -> Mapping[str, str]:
    if source.config_map_ref is not None:
        return _read("ConfigMap", source.config_map_ref, pod, lookups) or {}
    if source.secret_ref is not None:
        return _read("Secret", source.secret_ref, pod, lookups) or {}
    return {}


class _Reference(Protocol):
    """A reference to a ConfigMap or Secret, which may be missing if `optional` is set."""

    name: str | None
    optional: bool | None


def _read(kind: str, ref: _Reference, pod: Pod, lookups: Lookups) -> Mapping[str, str] | None:
    """Returns the object's values as text, or None if the object is missing and optional.

    Raises ContainerConfigError if it is missing and not optional.
    """
    namespace, name = pod.metadata.namespace or "", ref.name or ""
    values: Mapping[str, str] | None = None
    if kind == "ConfigMap":
        if (config_map := lookups.config_map(namespace, name)) is not None:
            values = config_map.data or {}
    elif (secret := lookups.secret(namespace, name)) is not None:
        values = {key: _decode(value) for key, value in (secret.data or {}).items()}
    if values is None and not ref.optional:
        raise ContainerConfigError(f'{kind.lower()} "{name}" not found')
    return values


def _decode(value: str) -> str:
    """Decodes a Secret's value from base64. Bytes that are not UTF-8 become surrogate escapes."""
    return base64.b64decode(value).decode("utf-8", "surrogateescape")
