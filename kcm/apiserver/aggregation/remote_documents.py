"""The documents of other servers, as they were fetched last, and their part of our own.

Source: staging/src/k8s.io/kube-aggregator/pkg/apiserver/handler_discovery.go and
pkg/controllers/openapi/aggregator/downloader.go, pkg/controllers/openapiv3/aggregator,
Kubernetes 1.33. Departures: only what is about the API's own group and version is taken from a
document, and documents have a largest size.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from kcm import errors
from kcm.apiserver.aggregation import fetching, remote_discovery
from kcm.apiserver.aggregation.fetching import (
    NOT_FOUND,
    NOT_MODIFIED,
    OK,
    Wanted,
    parse_json,
)
from kcm.apiserver.aggregation.identity import AGGREGATOR, OPENAPI_AGGREGATOR
from kcm.apiserver.aggregation.index import ApiIndex, RemoteApi, ServiceKey
from kcm.apiserver.auth.attributes import User
from kcm.apiserver.documents import openapi_merging, openapi_protobuf
from kcm.apiserver.documents.remote import Json, RemoteVersion, RemoteVersions
from kcm.apiserver.egress.services import Address, ServiceResolver
from kcm.apiserver.http.responses import json_bytes
from kcm.http.faults import CallFailed
from kcm.http.fetching import Answer

log = structlog.get_logger("kcm.apiserver")

DISCOVERY_TIMEOUT, OPENAPI_TIMEOUT = 5.0, 60.0  # seconds
MOST_DISCOVERY, MOST_OPENAPI = 2 * 1024 * 1024, 4 * 1024 * 1024  # bytes of a document
_HASH = re.compile(r"[?&]hash=([0-9A-Za-z]{1,256})")
_FAILURES = (errors.ApiError, CallFailed, ValueError, RecursionError, TypeError, KeyError)


class FetchFailed(errors.KcmError):
    """A document could not be fetched, or cannot be used."""


@dataclass(frozen=True)
class _Documents:
    """What is known about one API. `target` is the API for which it was fetched."""

    target: RemoteApi
    resources: tuple[Json, ...] = ()
    fresh: bool = False
    v2: Json | None = None
    v2_etag: str = ""
    v3_hash: str = ""
    v3: bytes | None = None


@dataclass(frozen=True)
class _Aggregated:
    """The aggregated discovery of one server."""

    etag: str
    versions: Mapping[tuple[str, str], list[dict[str, Any]]]


class RemoteDocuments:
    """Fetches documents, in one event loop, and describes them to all threads."""

    def __init__(self, certificate: bytes, resolver: ServiceResolver, index: ApiIndex) -> None:
        """`certificate` is the client's, with its key, in PEM."""
        self._certificate = certificate
        self._resolver = resolver
        self._index = index
        self._kept: dict[str, _Documents] = {}
        self._aggregated: dict[ServiceKey, _Aggregated] = {}
        self._generation = 0
        self._snapshot: tuple[tuple[int, int], RemoteVersions] = ((-1, -1), RemoteVersions())

    def describe(self) -> RemoteVersions:
        """Returns the versions that other servers serve, with what is known of their documents."""
        now = (self._index.generation, self._generation)
        seen, versions = self._snapshot
        if seen != now:
            apis = self._index.all().values()
            versions = RemoteVersions((self._describe(api) for api in apis), before=versions)
            self._snapshot = (now, versions)
        return versions

    def _describe(self, api: RemoteApi) -> RemoteVersion:
        kept = self._of(api)
        return RemoteVersion(
            group=api.group,
            version=api.version,
            priority=api.priority,
            resources=kept.resources,
            fresh=kept.fresh and api.available,
            openapi_v2=kept.v2,
            openapi_v3=kept.v3,
            openapi_v3_hash=kept.v3_hash,
        )

    def _of(self, api: RemoteApi) -> _Documents:
        kept = self._kept.get(api.name)
        target = api.target
        return kept if kept is not None and kept.target == target else _Documents(target)

    def _learn(self, api: RemoteApi, kept: _Documents) -> None:
        if self._kept.get(api.name) != kept:
            self._kept[api.name] = kept
            self._generation += 1

    def forget(self) -> None:
        """Drops what is known of APIs that are gone."""
        apis = self._index.all().values()
        names, services = {api.name for api in apis}, {api.service for api in apis}
        for name in set(self._kept) - names:
            del self._kept[name]
        for service in set(self._aggregated) - services:
            del self._aggregated[service]

    def _find(self, api: RemoteApi) -> Address:
        service = api.service
        return self._resolver.resolve(service.namespace, service.name, service.port)

    # --- discovery

    async def fetch_discovery(self, api: RemoteApi) -> None:
        """Fetches the resources of an API. Raises FetchFailed; the last known ones then stay."""
        try:
            resources = await self._fetch_resources(api, self._find(api))
        except _FAILURES as error:
            # What OpenAPI has learned meanwhile stays.
            self._learn(api, replace(self._of(api), fresh=False))
            raise FetchFailed(f"discovery of {api.name}: {error}") from None
        self._learn(api, replace(self._of(api), resources=tuple(resources), fresh=True))

    async def _fetch_resources(self, api: RemoteApi, address: Address) -> list[dict[str, Any]]:
        before = self._aggregated.get(api.service)
        etag = before.etag if before else ""
        accept = remote_discovery.ACCEPT
        document = await self._get_discovery(
            api, address, "/apis", AGGREGATOR, accept=accept, etag=etag
        )
        if document.status == NOT_MODIFIED and before is not None:
            return before.versions.get((api.group, api.version), [])
        if document.status == OK and remote_discovery.is_aggregated(
            document.header(b"content-type")
        ):
            versions = remote_discovery.parse_aggregated(parse_json(document))
            self._aggregated[api.service] = _Aggregated(document.header(b"etag"), versions)
            return versions.get((api.group, api.version), [])
        if document.status == 503:
            raise ValueError("the server is unavailable")
        user = replace(AGGREGATOR, groups=())
        document = await self._get_discovery(api, address, api.path, user)
        if document.status != OK:
            raise ValueError(f"status {document.status}")
        return remote_discovery.parse_legacy(parse_json(document), api.group, api.version)

    async def _get_discovery(
        self, api: RemoteApi, address: Address, path: str, user: User, **given: str
    ) -> Answer:
        """`given` may be the fields `accept` and `etag`."""
        wanted = Wanted(path, user, DISCOVERY_TIMEOUT, MOST_DISCOVERY, **given)
        return await fetching.get(api, address, api.trust(self._certificate), wanted)

    # --- OpenAPI

    async def fetch_openapi(self, api: RemoteApi) -> None:
        """Fetches the OpenAPI documents of an API, each of the two versions even if the other one
        cannot be used. Raises FetchFailed.
        """
        faults: list[str] = []
        for fetch in (self._fetch_v2, self._fetch_v3):
            try:
                await fetch(api, self._find(api))
            except _FAILURES as error:
                faults.append(f"{type(error).__name__}: {error}")
        if faults:
            raise FetchFailed(f"OpenAPI of {api.name}: {'; '.join(faults)}")

    async def _fetch_v2(self, api: RemoteApi, address: Address) -> None:
        kept = self._of(api)
        document = await self._get_openapi(api, address, "/openapi/v2", kept.v2_etag)
        if document.status == NOT_MODIFIED:
            return
        if document.status == NOT_FOUND:
            self._learn(api, replace(self._of(api), v2=None, v2_etag=""))
            return
        if document.status != OK:
            raise ValueError(f"failed to retrieve openAPI spec, http error: {document.status}")
        piece = openapi_merging.select_paths(parse_json(document), f"{api.path}/")
        try:  # both forms of our own document must be possible with it
            openapi_protobuf.encode({"swagger": "2.0", "info": _INFO, **piece})
        except AttributeError as error:
            raise ValueError(str(error)) from None
        self._learn(api, replace(self._of(api), v2=piece, v2_etag=document.header(b"etag")))

    async def _fetch_v3(self, api: RemoteApi, address: Address) -> None:
        document = await self._get_openapi(api, address, "/openapi/v3", "")
        kept = self._of(api)
        if document.status == NOT_FOUND:
            converted = _convert(kept.v2) if kept.v2 is not None else None
            hashed = hashlib.sha256(converted).hexdigest()[:32].upper() if converted else ""
            self._learn(api, replace(kept, v3=converted, v3_hash=hashed))
            return
        if document.status != OK:
            raise ValueError(f"status {document.status} of /openapi/v3")
        self._learn(api, replace(kept, v3=None, v3_hash=_find_hash(parse_json(document), api)))

    async def _get_openapi(self, api: RemoteApi, address: Address, path: str, etag: str) -> Answer:
        wanted = Wanted(path, OPENAPI_AGGREGATOR, OPENAPI_TIMEOUT, MOST_OPENAPI, etag=etag)
        return await fetching.get(api, address, api.trust(self._certificate), wanted)


_INFO = {"title": "Kubernetes", "version": "unversioned"}


def _convert(piece: Json) -> bytes:
    return json_bytes(openapi_merging.convert_to_v3(piece, _INFO))


def _find_hash(root: Any, api: RemoteApi) -> str:
    """Returns the hash of an API's document in the list of all, "" if it has none."""
    paths = root.get("paths") if isinstance(root, dict) else None
    entry = paths.get(f"apis/{api.group}/{api.version}") if isinstance(paths, dict) else None
    if not isinstance(entry, dict):
        return ""
    url = str(entry.get("serverRelativeURL", ""))
    found = _HASH.search(url)
    return found[1] if found else hashlib.sha256(url.encode()).hexdigest()[:32].upper()
