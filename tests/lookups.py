"""The objects that pods refer to, given by a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kcm.api.core_v1 import ConfigMap, Secret, Service


@dataclass(frozen=True)
class FakeLookups:
    """Implements environment.lookups.Lookups with given objects, by (namespace, name)."""

    config_maps: Mapping[tuple[str, str], ConfigMap] = field(default_factory=dict)
    secrets: Mapping[tuple[str, str], Secret] = field(default_factory=dict)
    all_services: tuple[Service, ...] = ()

    def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        """Returns the ConfigMap, or None if none was given."""
        return self.config_maps.get((namespace, name))

    def secret(self, namespace: str, name: str) -> Secret | None:
        """Returns the Secret, or None if none was given."""
        return self.secrets.get((namespace, name))

    def services(self) -> Iterable[Service]:
        """Returns all Services that were given."""
        return self.all_services

    def service_account_token(
        self, namespace: str, name: str, audience: str, seconds: int
    ) -> str | None:
        """Returns None: nobody issues tokens here."""
        return None
