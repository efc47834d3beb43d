"""The interface through which environments and volumes get objects other than the pod itself."""

from __future__ import annotations

from collections.abc import Iterable
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
from kcm.apimachinery.quantity import ResourceList


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
