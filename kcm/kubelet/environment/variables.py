"""A container's environment variables.

They come from Services, then from envFrom, then from env; a later variable replaces an earlier one
of its name. A value may refer to variables that are declared before it.

Source: makeEnvironmentVariables in pkg/kubelet/kubelet_pods.go, Kubernetes 1.33. Departure: the
variables are in the order of their declaration; upstream's are in that of a Go map.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.containers import Container
from kcm.api.core_v1.environment import (
    ConfigMapKeySelector,
    EnvFromSource,
    EnvVarSource,
    SecretKeySelector,
)
from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.expansion import expand
from kcm.kubelet.environment.fields import field_value, resource_value
from kcm.kubelet.environment.lookups import Lookups, PodLocation
from kcm.kubelet.environment.services import service_variables


def make_environment(
    pod: Pod, container: Container, lookups: Lookups, location: PodLocation
) -> dict[str, str]:
    """Returns the container's environment variables.

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
            sources = _Sources(pod, container, lookups, location)
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
