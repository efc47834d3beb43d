"""The objects that pods refer to, given by a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kcm.api.core_v1 import (
    ConfigMap,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Secret,
    Service,
)
from kcm.api.node_v1 import RuntimeClass
from kcm.errors import ContainerConfigError


@dataclass(frozen=True)
class FakeLookups:
    """Implements environment.lookups.Lookups with given objects, by (namespace, name)."""

    config_maps: Mapping[tuple[str, str], ConfigMap] = field(default_factory=dict)
    secrets: Mapping[tuple[str, str], Secret] = field(default_factory=dict)
    all_services: tuple[Service, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    runtime_classes: tuple[RuntimeClass, ...] = ()

    def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        """Returns the ConfigMap, or None if none was given."""
        return self.config_maps.get((namespace, name))

    def secret(self, namespace: str, name: str) -> Secret | None:
        """Returns the Secret, or None if none was given."""
        return self.secrets.get((namespace, name))

    def persistent_volume_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Returns the claim, or None if none was given."""
        key = f"{namespace}/{name}"
        return next((claim for claim in self.claims if claim.key == key), None)

    def persistent_volume(self, name: str) -> PersistentVolume | None:
        """Returns the volume, or None if none was given."""
        return next((volume for volume in self.volumes if volume.name == name), None)

    def runtime_class(self, name: str) -> RuntimeClass | None:
        """Returns the RuntimeClass, or None if none was given."""
        return next((each for each in self.runtime_classes if each.name == name), None)

    def services(self) -> Iterable[Service]:
        """Returns all Services that were given."""
        return self.all_services

    def service_account_token(self, pod: Pod, audience: str, seconds: int) -> str:
        """Raises ContainerConfigError: nobody issues tokens here."""
        raise ContainerConfigError("no service account tokens here")
