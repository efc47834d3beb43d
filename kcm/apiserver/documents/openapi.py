"""The OpenAPI documents of version 3 and 2, which are generated from the models.

`kubectl explain` reads them, and clients that need the schemas of parameters and patches. Version 2
is served as JSON and as protobuf.

Source: k8s.io/kube-openapi, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from kcm import __version__
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Kinds, Resource
from kcm.apiserver.computed_kinds import is_metric
from kcm.apiserver.documents import discovery, openapi_merging, openapi_protobuf
from kcm.apiserver.documents.discovery import Discovery
from kcm.apiserver.documents.openapi_pages import Page, describe_page, list_pages
from kcm.apiserver.documents.openapi_parameters import shared_parameters
from kcm.apiserver.documents.openapi_paths import paths_of
from kcm.apiserver.documents.openapi_schemas import V2, V3, Dialect, schemas_of
from kcm.apiserver.documents.remote import NO_REMOTE, RemoteVersions
from kcm.apiserver.http.responses import Response, json_bytes, media_types
from kcm.apiserver.http_errors import NotAcceptable, PathNotFound

_JSON_NAMES = frozenset({"application/json", "application/*", "*/*"})


class OpenApi:
    """The documents of one server."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._discovery = Discovery(kinds)
        self._index = lru_cache(maxsize=1)(self._build_index)
        self._v3 = lru_cache(maxsize=64)(self._build_v3)
        self._v2_json = lru_cache(maxsize=1)(self._build_v2_json)
        self._v2_protobuf = lru_cache(maxsize=1)(self._build_v2_protobuf)

    def respond(
        self, rest: Sequence[str], accept: str, remote: RemoteVersions = NO_REMOTE
    ) -> Response:
        """Returns the response for /openapi/v2, /openapi/v3 or a path below it.

        `rest` are the parts of the path after /openapi. Raises PathNotFound and NotAcceptable.
        """
        media, generation = media_types(accept), self._kinds.generation()
        if rest == ["v2"] and media and media[0].name == openapi_protobuf.CONTENT_TYPE:
            body = self._v2_protobuf(generation, remote)
            return Response(body, content_type=openapi_protobuf.RESPONSE_TYPE)
        if media and not any(entry.name in _JSON_NAMES for entry in media):
            raise NotAcceptable
        match rest:
            case ["v2"]:
                return Response(self._v2_json(generation, remote))
            case ["v3"]:
                return Response(self._index(generation, remote))
            case ["v3", "apis", group, version] if (group, version) in remote:
                other = remote.by_name[group, version]
                if other.openapi_v3 is not None:
                    return Response(other.openapi_v3)
            case ["v3", *parts]:
                place = "/".join(parts)
                resources = self._places().get(place)
                if resources is not None:
                    return Response(self._v3(place, _hash(place, resources)))
        raise PathNotFound

    def _list_described_resources(self, remote: RemoteVersions = NO_REMOTE) -> list[Resource]:
        """Returns every served resource but metrics, which clients cannot write."""
        served = self._discovery.list_served_resources(remote)
        return [resource for resource in served if not is_metric(resource)]

    def _places(self, remote: RemoteVersions = NO_REMOTE) -> dict[str, list[Resource]]:
        """Returns the served resources by place: a group and version, such as `api/v1` or
        `apis/apps/v1`, or a page without resources, such as `version`.
        """
        by_place: dict[str, list[Resource]] = {page.place: [] for page in self._pages(remote)}
        for resource in self._list_described_resources(remote):
            place = f"{'apis' if resource.group else 'api'}/{resource.api_version}"
            by_place.setdefault(place, []).append(resource)
        return dict(sorted(by_place.items()))

    def _pages(self, remote: RemoteVersions) -> Iterator[Page]:
        """Returns the pages that are described: those of built-in groups, as upstream."""
        resources = [
            one
            for one in self._list_described_resources(remote)
            if not isinstance(one, CustomResource)
        ]
        versions = dict.fromkeys((one.group, one.version) for one in resources)
        groups = dict.fromkeys(one.group for one in resources if one.group)
        return list_pages(groups, versions)

    def _build_index(self, _generation: int, remote: RemoteVersions) -> bytes:
        hashes = {
            place: _hash(place, resources) for place, resources in self._places(remote).items()
        }
        hashes |= {
            other.place: quote(other.openapi_v3_hash, safe="")
            for other in remote.by_name.values()
            if other.openapi_v3_hash
        }
        return json_bytes(
            {
                "paths": {
                    place: {"serverRelativeURL": f"/openapi/v3/{place}?hash={hashed}"}
                    for place, hashed in hashes.items()
                }
            }
        )

    def _build_v3(self, place: str, _hash: str) -> bytes:
        """Returns the document of a group and version.

        The cache is keyed by names, not by resources, so that a removed kind's models can be freed.
        """
        resources = self._places()[place]
        pages = [page for page in self._pages(NO_REMOTE) if page.place == place]
        described = _describe(pages, resources, V3)
        components = {"schemas": described["definitions"], "parameters": described["parameters"]}
        components = {name: section for name, section in components.items() if section}
        return json_bytes(
            {
                "openapi": "3.0.0",
                "info": _info(),
                "paths": described["paths"],
                "components": components,
            }
        )

    def _v2(self, remote: RemoteVersions) -> dict[str, Any]:
        resources = self._list_described_resources(remote)
        described = _describe(self._pages(remote), resources, V2)
        own = {"swagger": "2.0", "info": _info()} | described
        pieces = [other.openapi_v2 for other in remote.by_name.values() if other.openapi_v2]
        return openapi_merging.merge(own, pieces) if pieces else own

    def _build_v2_json(self, _generation: int, remote: RemoteVersions) -> bytes:
        return json_bytes(self._v2(remote))

    def _build_v2_protobuf(self, _generation: int, remote: RemoteVersions) -> bytes:
        return openapi_protobuf.encode(self._v2(remote))


def _hash(place: str, resources: Iterable[Resource]) -> str:
    """Returns a hash of what a document is generated from.

    The document itself is generated only when a client asks for it.
    """
    made = hashlib.sha256(f"{place} {__version__}".encode())
    for resource in resources:
        made.update(repr(_describe_serving(resource)).encode())
        if isinstance(resource, CustomResource):
            made.update(resource.custom.schema.digest)
        else:
            made.update(_built_in(resource))
    return made.hexdigest()[:32].upper()


@lru_cache(maxsize=256)
def _built_in(resource: Resource) -> bytes:
    return hashlib.sha256(json_bytes(schemas_of([resource], V3))).digest()


def _describe_serving(resource: Resource) -> tuple[object, ...]:
    return (
        resource.api_version, resource.kind, resource.list_kind, resource.plural,
        resource.namespaced, resource.has_status, resource.scale,
    )  # fmt: skip


def _describe(
    pages: Iterable[Page], resources: Iterable[Resource], dialect: Dialect
) -> dict[str, Any]:
    """Returns the paths of pages and resources, and the definitions and parameters that they refer
    to.
    """
    paths: dict[str, Any] = {}
    for page in pages:
        paths |= describe_page(page, dialect)
    for resource in resources:
        paths |= paths_of(resource, dialect)
    schemas = {dialect.refs + name: one for name, one in schemas_of(resources, dialect).items()}
    reached = openapi_merging.find_references(paths.values(), schemas | shared_parameters(dialect))
    return {"paths": dict(sorted(paths.items()))} | {
        section: {
            ref.removeprefix(prefix): reached[ref]
            for ref in sorted(reached)
            if ref.startswith(prefix)
        }
        for section, prefix in (("definitions", dialect.refs), ("parameters", dialect.shared))
    }


def _info() -> dict[str, str]:
    return {"title": "Kubernetes", "version": discovery.version()["gitVersion"]}
