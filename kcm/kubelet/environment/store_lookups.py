"""Reads the objects that pods refer to from the store, and caches them.

Guarantees: a new pod gets what was stored before it was bound. While the store is unavailable, what
was read before is used. Does not guarantee that a change is seen sooner than after `TTL`.

Source: pkg/kubelet/util/manager/cache_based_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from kcm import errors
from kcm.api.core_v1 import (
    ConfigMap,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Secret,
    Service,
)
from kcm.api.node_v1 import RuntimeClass
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import Kind
from kcm.clock import Clock
from kcm.kubelet.environment.services import with_api_server
from kcm.kubelet.environment.variables import Lookups
from kcm.kubelet.tokens.manager import NoTokens, TokenManager, TokenSource
from kcm.store.objects import ObjectStore

CONFIG_MAPS, SECRETS = ConfigMap.resource, Secret.resource
SERVICES = Service.resource
CLAIMS = PersistentVolumeClaim.resource
VOLUMES = PersistentVolume.resource
RUNTIME_CLASSES = RuntimeClass.resource

T = TypeVar("T")

TTL = 5.0  # seconds that an object is cached
_STALE = -math.inf
AWAY = 2.0  # seconds after a failed read in which cached objects are not read again


class StoreLookups:
    """Reads objects from the store and caches them. Thread-safe."""

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        tokens: TokenSource | None = None,
        api_server: tuple[str, int] | None = None,
    ) -> None:
        """`api_server` is the host and port at which pods reach the API server, None for those of
        its Service.
        """
        self._tokens = TokenManager(tokens or NoTokens(), clock)
        self._api_server = api_server
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._cached: dict[tuple[str, str], tuple[float, Any]] = {}
        self._away_until = 0.0

    def invalidate(self) -> None:
        """Makes the next look-ups read the store, unless the store is unavailable."""
        with self._lock:
            self._cached = {of: (_STALE, value) for of, (_, value) in self._cached.items()}

    def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        """Returns the ConfigMap, or None if there is none.

        Raises StoreUnavailable if the store is unavailable and the ConfigMap was never read.
        """
        return self._get(CONFIG_MAPS, f"{namespace}/{name}")

    def secret(self, namespace: str, name: str) -> Secret | None:
        """Returns the Secret, or None if there is none.

        Raises StoreUnavailable if the store is unavailable and the Secret was never read.
        """
        return self._get(SECRETS, f"{namespace}/{name}")

    def persistent_volume_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Returns the claim, or None if there is none.

        Raises StoreUnavailable if the store is unavailable and the claim was never read.
        """
        return self._get(CLAIMS, f"{namespace}/{name}")

    def persistent_volume(self, name: str) -> PersistentVolume | None:
        """Returns the volume, or None if there is none.

        Raises StoreUnavailable if the store is unavailable and the volume was never read.
        """
        return self._get(VOLUMES, name)

    def runtime_class(self, name: str) -> RuntimeClass | None:
        """Returns the RuntimeClass, or None if there is none.

        Raises StoreUnavailable if the store is unavailable and the class was never read.
        """
        return self._get(RUNTIME_CLASSES, name)

    def services(self) -> Sequence[Service]:
        """Returns the Services of all namespaces.

        Raises StoreUnavailable if the store is unavailable and they were never read.
        """
        services = self._read((SERVICES.name, ""), lambda: self._store.in_namespace(SERVICES, ""))
        if self._api_server is None:
            return services
        return with_api_server(services, *self._api_server)

    def service_account_token(self, pod: Pod, audience: str, seconds: int) -> str:
        """Returns a token of the pod's service account. Raises ContainerConfigError."""
        return self._tokens.token(pod, audience, seconds)

    def _get(self, resource: Resource[Kind], key: str) -> Kind | None:
        return self._read((resource.name, key), lambda: self._store.find(resource, key))

    def _read(self, of: tuple[str, str], read: Callable[[], T]) -> T:
        """Returns the cached value if it is younger than TTL, else what `read` returns.

        While the store is unavailable, an older value is returned as well. Without one, raises what
        `read` raises.
        """
        now = self._clock.monotonic()
        with self._lock:
            at, value = self._cached.get(of, (_STALE, None))
            away = now < self._away_until
        if of in self._cached and (away or (value is not None and now - at < TTL)):
            return cast(T, value)
        try:
            value = read()
        except errors.Temporary:
            with self._lock:
                self._away_until = self._clock.monotonic() + AWAY
                if of in self._cached:
                    return cast(T, self._cached[of][1])
            raise
        with self._lock:
            self._cached[of] = (now, value)
        return value


class StaticPodLookups:
    """The look-ups of static pods, which have to start without a control plane.

    There are no Services if the store is unavailable and they were never read.
    """

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        return self._lookups.config_map(namespace, name)

    def secret(self, namespace: str, name: str) -> Secret | None:
        return self._lookups.secret(namespace, name)

    def persistent_volume_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self._lookups.persistent_volume_claim(namespace, name)

    def persistent_volume(self, name: str) -> PersistentVolume | None:
        return self._lookups.persistent_volume(name)

    def runtime_class(self, name: str) -> RuntimeClass | None:
        return self._lookups.runtime_class(name)

    def services(self) -> Iterable[Service]:
        try:
            return self._lookups.services()
        except errors.Temporary:
            return ()

    def service_account_token(self, pod: Pod, audience: str, seconds: int) -> str:
        return self._lookups.service_account_token(pod, audience, seconds)
