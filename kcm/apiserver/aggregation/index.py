"""The APIServices that name a Service, by the version of the API group that they are about.

What is stored may be anybody's: an APIService that does not name a version and a Service is passed
over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from kcm.api.apiregistration_v1 import DEFAULT_PORT, GROUP, APIService, is_true, name_of
from kcm.api.scheme import Resource
from kcm.apimachinery import names
from kcm.apimachinery.meta_v1 import Kind
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.cache.watch_cache import WatchCache
from kcm.apiserver.documents.priorities import Priority
from kcm.http.trust import Trust, read_bundle

_PARTS = 2  # of a path below /apis: group and version


@dataclass(frozen=True)
class ServiceKey:
    """A port of a Service."""

    namespace: str
    name: str
    port: int

    @property
    def key(self) -> str:
        """The key of the Service, and of its Endpoints."""
        return f"{self.namespace}/{self.name}"

    @property
    def server_name(self) -> str:
        """The name that the server's certificate must be for."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True)
class RemoteApi:
    """A version of an API group that the server behind a Service serves.

    `authority` are the certificates, in PEM, that its certificate must be signed by; without any,
    those that the system trusts.
    """

    group: str
    version: str
    service: ServiceKey
    priority: Priority
    authority: bytes = field(default=b"", repr=False)
    insecure: bool = False  # any certificate is accepted
    available: bool = False
    uid: str = ""

    @property
    def name(self) -> str:
        """The name of its APIService."""
        return name_of(self.group, self.version)

    @property
    def path(self) -> str:
        """The path below which it is served."""
        return f"/apis/{self.group}/{self.version}"

    @property
    def target(self) -> RemoteApi:
        """This API without what changes nothing about its server."""
        return replace(self, available=False, priority=Priority(0, 0))

    def trust(self, certificate: bytes) -> Trust:
        """Returns by what its server is known, which is shown this client certificate."""
        return Trust(b"" if self.insecure else self.authority, certificate, self.insecure)


def describe(service: APIService) -> RemoteApi | None:
    """Returns the API of an APIService, None if this server serves it itself.

    The core group and that of APIServices are never given away.
    """
    spec = service.spec
    group, version = spec.group or "", spec.version or ""
    reference = spec.service
    if (
        reference is None
        or group in {"", GROUP}
        or service.name != name_of(group, version)
        or names.subdomain_faults(group)
        or names.label_1035_faults(version)
        or not (reference.namespace and reference.name)
    ):
        return None
    return RemoteApi(
        group=group,
        version=version,
        service=ServiceKey(reference.namespace, reference.name, reference.port or DEFAULT_PORT),
        priority=Priority(spec.group_priority_minimum, spec.version_priority),
        authority=read_bundle(spec.ca_bundle or ""),
        insecure=bool(spec.insecure_skip_tls_verify),
        available=is_true(service),
        uid=service.uid,
    )


class Caches(Protocol):
    """The watch caches, as `kcm.apiserver.cache.cacher.Cacher` has them."""

    def cache(self, resource: Resource[Kind]) -> WatchCache[Kind]: ...


class ApiIndex:
    """Finds the API for a request. It is rebuilt when an APIService has changed.

    Threads may share it: a change replaces what they read as a whole.
    """

    def __init__(self, caches: Caches) -> None:
        self._source = caches.cache(APIService.resource)
        self._seen = -1
        self._by_version: Mapping[tuple[str, str], RemoteApi] = {}
        self._described: dict[str, tuple[Entry[APIService], RemoteApi | None]] = {}  # by name

    @property
    def generation(self) -> int:
        """A number that changes with every change of an APIService."""
        return self._source.generation

    @property
    def filled(self) -> bool:
        """Whether the APIServices have been read."""
        return self._source.position >= 0

    def all(self) -> Mapping[tuple[str, str], RemoteApi]:
        """Returns the APIs of other servers by group and version."""
        now = self._source.generation
        if now != self._seen:
            self._described = self._describe()
            apis = (api for _, api in self._described.values() if api is not None)
            self._by_version = {(api.group, api.version): api for api in apis}
            self._seen = now
        return self._by_version

    def find(self, path: str) -> RemoteApi | None:
        """Returns the API that a path belongs to, or None."""
        apis = self.all()
        if not apis or not path.startswith("/apis/"):
            return None
        parts = path.split("/", 4)[2:4]
        return apis.get((parts[0], parts[1])) if len(parts) == _PARTS else None

    def _describe(self) -> dict[str, tuple[Entry[APIService], RemoteApi | None]]:
        """Returns the API of each APIService. Those that have not changed are not read again."""
        kept, described = self._described, {}
        for entry in self._source.entries():
            before = kept.get(entry.key)
            if before is None or before[0] is not entry:
                before = (entry, describe(entry.obj))
            described[entry.key] = before
        return described
