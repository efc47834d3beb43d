"""Asks an API server which kinds it serves.

Aggregated discovery is two requests. A server without it (before 1.27) is asked group by group.
A group whose kinds cannot be read, such as one of an APIService that does not respond, costs only
itself: its name and the reason are returned beside what the others have.

A server that is not ready is not believed. A kube-apiserver 1.36.2 that has just started names no
custom kinds, without an error, for some 100 ms.

Source: staging/src/k8s.io/client-go/discovery/{aggregated_discovery,discovery_client}.go,
Kubernetes 1.36.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kcm import errors
from kcm.store.remote.rest import RestClient

_AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;q=0.9"
)
_STALE = "Stale"


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind in one version, and what can be done with its objects."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: frozenset[str]


@dataclass
class Served:
    """What a server serves. Groups and versions are in its order of preference.

    `failed` has the groups and versions whose kinds could not be read, each with the reason.
    """

    kinds: list[ServedKind] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def discover(client: RestClient) -> Served:
    """Returns what the server serves.

    Raises StoreUnavailable, also if the server refuses or is not ready, as one that has just
    started.
    """
    try:
        _require_ready(client)
        return _discover(client)
    except errors.ApiError as error:
        raise errors.StoreUnavailable(f"the API server does not say what it serves: {error}") from (
            error
        )


def _require_ready(client: RestClient) -> None:
    """Raises StoreUnavailable if the server says that it is not ready."""
    try:
        with suppress(errors.NotFound, errors.Forbidden):  # it does not say
            client.request("GET", "/readyz")
    except errors.StoreUnavailable as error:
        raise errors.StoreUnavailable(f"the API server is not ready: {error}") from error


def _discover(client: RestClient) -> Served:
    served = Served()
    for path in ("/api", "/apis"):
        answer = json.loads(client.request("GET", path, accept=_AGGREGATED))
        if answer.get("kind") == "APIGroupDiscoveryList":
            _read_aggregated(answer, served)
        elif path == "/api":
            _read_version(client, "", "v1", served)
        else:
            _read_groups(client, answer, served)
    return served


def _read_aggregated(answer: Mapping[str, Any], served: Served) -> None:
    for group in answer.get("items") or ():
        name = group.get("metadata", {}).get("name", "")
        for version in group.get("versions") or ():
            served.kinds += _list_kinds(name, version)
            if version.get("freshness") == _STALE:
                where = f"{name}/{version['version']}"
                served.failed[where] = f"stale GroupVersion discovery: {where}"


def _list_kinds(group: str, version: Mapping[str, Any]) -> Iterator[ServedKind]:
    for resource in version.get("resources") or ():
        kind = (resource.get("responseKind") or {}).get("kind")
        if kind:
            yield ServedKind(
                group,
                version["version"],
                resource["resource"],
                kind,
                resource.get("scope") == "Namespaced",
                frozenset(resource.get("verbs") or ()),
            )


def _read_groups(client: RestClient, answer: Mapping[str, Any], served: Served) -> None:
    for group in answer.get("groups") or ():
        preferred = (group.get("preferredVersion") or {}).get("version")
        versions = [version["version"] for version in group.get("versions") or ()]
        for version in sorted(versions, key=lambda each: each != preferred):
            _read_version(client, group["name"], version, served)


def _read_version(client: RestClient, group: str, version: str, served: Served) -> None:
    where = f"{group}/{version}" if group else version
    try:
        answer = json.loads(client.request("GET", f"/apis/{where}" if group else f"/api/{where}"))
    except errors.KcmError as error:
        served.failed[where] = str(error)
        return
    for resource in answer.get("resources") or ():
        if "/" not in resource["name"]:
            served.kinds.append(
                ServedKind(
                    resource.get("group") or group,
                    resource.get("version") or version,
                    resource["name"],
                    resource["kind"],
                    bool(resource.get("namespaced")),
                    frozenset(resource.get("verbs") or ()),
                )
            )
