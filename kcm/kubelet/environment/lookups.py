"""What environments and volumes are made from, beside the pod itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kcm.api.core_v1 import ConfigMap, Secret, Service
from kcm.apimachinery.quantity import ResourceList


class Lookups(Protocol):
    """Objects as the node knows them. None means that there is no such object."""

    def config_map(self, namespace: str, name: str) -> ConfigMap | None: ...

    def secret(self, namespace: str, name: str) -> Secret | None: ...

    def services(self) -> Iterable[Service]: ...

    def service_account_token(
        self, namespace: str, name: str, audience: str, seconds: int
    ) -> str | None:
        """A token for the pod's account; None where none are issued."""
        ...


@dataclass(frozen=True)
class Place:
    """Where a pod runs, as downward fields tell it."""

    pod_ips: tuple[str, ...] = ()
    host_ips: tuple[str, ...] = ()
    allocatable: ResourceList = field(default_factory=dict)  # stands in for missing limits


@dataclass(frozen=True)
class KnownObjects:
    """Lookups in given objects, by (namespace, name)."""

    config_maps: Mapping[tuple[str, str], ConfigMap] = field(default_factory=dict)
    secrets: Mapping[tuple[str, str], Secret] = field(default_factory=dict)
    all_services: tuple[Service, ...] = ()

    def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        return self.config_maps.get((namespace, name))

    def secret(self, namespace: str, name: str) -> Secret | None:
        return self.secrets.get((namespace, name))

    def services(self) -> Iterable[Service]:
        return self.all_services

    def service_account_token(
        self, namespace: str, name: str, audience: str, seconds: int
    ) -> str | None:
        return None
