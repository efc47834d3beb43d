"""Discovery: the documents that say which resources are served, in upstream's three forms.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/discovery and
staging/src/k8s.io/api/apidiscovery, Kubernetes 1.33.
"""

from __future__ import annotations

import platform
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from kcm import KUBERNETES_VERSION, __version__
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Kinds, Resource
from kcm.apiserver import computed_kinds
from kcm.apiserver.documents.priorities import (
    RankedVersion,
    priority_of,
    sort_by_group_and_version,
)
from kcm.apiserver.documents.remote import NO_REMOTE, RemoteVersions
from kcm.apiserver.http.responses import JSON, Response, json_bytes, json_response, media_types
from kcm.apiserver.http_errors import PathNotFound
from kcm.apiserver.objects.subresources import DescribedSubresource, describe_subresources
from kcm.apiserver.request_info import NOT_DELETED_TOGETHER

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

_GROUP = "apidiscovery.k8s.io"
_AGGREGATED = ("v2", "v2beta1")


def version() -> dict[str, str]:
    """Returns the response of /version."""
    major, minor, _ = KUBERNETES_VERSION.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{KUBERNETES_VERSION}+kcm.{__version__}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation(),
        "platform": f"{sys.platform}/{platform.machine()}",
    }


class Discovery:
    """The documents of one server, which say what it serves of its store's kinds."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._aggregated_body = lru_cache(maxsize=8)(self._build_aggregated)

    def list_served_resources(self, remote: RemoteVersions = NO_REMOTE) -> tuple[Resource, ...]:
        """Returns all served resources, also those whose objects are computed for requests.

        Those in versions that other servers serve are left out.
        """
        served = (*self._kinds.served(), *computed_kinds.LISTED)
        return tuple(one for one in served if (one.group, one.version) not in remote)

    def list_versions(self, remote: RemoteVersions = NO_REMOTE) -> list[list[RankedVersion]]:
        """Returns the versions of each served API group, in the order of their priorities.

        The core group is left out.
        """
        ranked: dict[tuple[str, str], RankedVersion] = {}
        for resource in self.list_served_resources(remote):
            name = (resource.group, resource.version)
            if resource.group and name not in ranked:
                custom = isinstance(resource, CustomResource)
                ranked[name] = RankedVersion(*name, priority_of(*name, custom=custom))
        for name in computed_kinds.OPEN.items():
            ranked[name] = RankedVersion(*name, priority_of(*name))
        for one in remote.by_name.values():
            ranked[one.group, one.version] = RankedVersion(one.group, one.version, one.priority)
        return sort_by_group_and_version(ranked.values())

    def groups(self, remote: RemoteVersions = NO_REMOTE) -> dict[str, list[str]]:
        """Returns the versions of each served API group by its name, the preferred one first.

        The core group is left out.
        """
        return {
            versions[0].group: [version_.name for version_ in versions]
            for versions in self.list_versions(remote)
        }

    def api(self, accept: str, server: str) -> Response:
        """Returns the response of /api: the versions of the core group.

        A client that asks for aggregated discovery gets its resources, too. `server` is the address
        that the client used.
        """
        form = _aggregated_form(accept)
        if form:
            return self._aggregated(form, [""])
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": server}
        return json_response(
            {
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [address],
            }
        )

    def apis(self, accept: str, remote: RemoteVersions = NO_REMOTE) -> Response:
        """Returns the response of /apis: the groups, for aggregated discovery with their
        resources.
        """
        form = _aggregated_form(accept)
        if form:
            return self._aggregated(form, list(self.groups(remote)), remote)
        entries = [_group(name, versions) for name, versions in self.groups(remote).items()]
        return json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": entries})

    def group(self, name: str, remote: RemoteVersions = NO_REMOTE) -> Response:
        """Returns the response of /apis/<group>. Raises PathNotFound."""
        versions = self.groups(remote).get(name)
        if versions is None:
            raise PathNotFound
        return json_response({"kind": "APIGroup", "apiVersion": "v1"} | _group(name, versions))

    def group_version(self, group_: str, version_: str) -> Response:
        """Returns the resources of /api/v1 or /apis/<group>/<version>. Raises PathNotFound."""
        served = self.list_served_resources()
        resources = [r for r in served if (r.group, r.version) == (group_, version_)]
        if not resources:
            raise PathNotFound
        entries = [
            entry
            for resource in resources
            for entry in _entries(resource, self._kinds.versions(resource.name))
        ]
        return json_response(
            {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": resources[0].api_version,
                "resources": sorted(entries, key=lambda entry: str(entry["name"])),
            }
        )

    def _aggregated(
        self, form: str, names: list[str], remote: RemoteVersions = NO_REMOTE
    ) -> Response:
        content_type = f"{JSON};g={_GROUP};v={form};as=APIGroupDiscoveryList"
        body = self._aggregated_body(form, tuple(names), self._kinds.generation(), remote)
        return Response(body, content_type=content_type)

    def _build_aggregated(
        self, form: str, names: tuple[str, ...], _generation: int, remote: RemoteVersions
    ) -> bytes:
        by_group: dict[str, list[Resource]] = {}
        for resource in self.list_served_resources(remote):
            by_group.setdefault(resource.group, []).append(resource)
        order = self.groups(remote) | {"": ["v1"]}
        items = [
            _aggregated_group(name, order[name], by_group.get(name, ()), remote) for name in names
        ]
        return json_bytes(
            {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": f"{_GROUP}/{form}",
                "metadata": {},
                "items": items,
            }
        )


def _group(name: str, versions: Sequence[str]) -> dict[str, Any]:
    entries = [{"groupVersion": f"{name}/{version_}", "version": version_} for version_ in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def list_verbs(resource: Resource) -> tuple[str, ...]:
    if computed_kinds.is_computed(resource):
        return computed_kinds.list_verbs(resource)
    together = resource.name not in NOT_DELETED_TOGETHER
    return tuple(verb for verb in VERBS if together or verb != "deletecollection")


def _entries(resource: Resource, versions: Sequence[Resource]) -> Iterator[dict[str, Any]]:
    """Yields the entries of a resource and its subresources; `versions` has all versions of its
    kind, the storage version first, and is empty if its objects are not stored.
    """
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(list_verbs(resource)),
    }
    yield entry | _short_names(resource) | _storage_version_hash(versions)
    for sub in describe_subresources(resource):
        yield _subresource_entry(resource, sub)


def _short_names(resource: Resource) -> dict[str, list[str]]:
    """Returns the short names and categories of a resource, without those that are empty."""
    named = {"shortNames": resource.short_names, "categories": resource.categories}
    return {field: list(names) for field, names in named.items() if names}


def _storage_version_hash(versions: Sequence[Resource]) -> dict[str, str]:
    """Returns what tells a client that the storage version of a kind has changed.

    Source: StorageVersionHash in staging/src/k8s.io/apiserver/pkg/endpoints/discovery.
    """
    if not versions or not versions[0].served:
        return {}
    stored = versions[0]
    digest = sha256(f"{stored.group}/{stored.version}/{stored.kind}".encode()).digest()
    return {"storageVersionHash": b64encode(digest[:8]).decode()}


def _subresource_entry(resource: Resource, sub: DescribedSubresource) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": f"{resource.plural}/{sub.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": sub.kind,
        "verbs": list(sub.verbs),
    }
    if (sub.group, sub.version) != (resource.group, resource.version):
        entry |= {"group": sub.group, "version": sub.version}
    return entry


# --- aggregated


def _aggregated_form(accept: str) -> str:
    """Returns the version of aggregated discovery that a client prefers, "" for the plain form."""
    for media in media_types(accept):
        if media.name == JSON:
            if not media.get("as"):
                return ""
            if media.get("g") == _GROUP and media.get("v") in _AGGREGATED:
                return media.get("v")
    return ""


def is_aggregated(response: Response) -> bool:
    """Reports whether a response is aggregated discovery."""
    return f"g={_GROUP}" in response.content_type


def _aggregated_group(
    name: str, versions: Sequence[str], in_group: Sequence[Resource], remote: RemoteVersions
) -> dict[str, Any]:
    entries = []
    for version_ in versions:
        other = remote.by_name.get((name, version_))
        # custom and external metrics have none here: their page names what exists at present
        resources = (
            [_aggregated_resource(r) for r in in_group if r.version == version_]
            if other is None
            else list(other.resources)
        )
        fresh = other is None or other.fresh
        entries.append(
            {
                "version": version_,
                "resources": resources,
                "freshness": "Current" if fresh else "Stale",
            }
        )
    return {"metadata": {"name": name} if name else {}, "versions": entries}


def _aggregated_resource(resource: Resource) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(list_verbs(resource)),
    }
    subresources = [
        {
            "subresource": sub.name,
            "responseKind": _kind(sub.group, sub.version, sub.kind),
            "verbs": list(sub.verbs),
        }
        for sub in describe_subresources(resource)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry | _short_names(resource)


def _kind(group_: str, version_: str, kind: str) -> dict[str, str]:
    return {"group": group_, "version": version_, "kind": kind}
