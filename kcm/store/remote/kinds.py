"""Keeps the scheme of a remote store equal to what its server serves.

Of each kind, the versions are taken that both sides have. Custom kinds, and built-in ones of which
kcm has no model, are read as metadata, which is all that the garbage collector, the namespace
controller, quotas and PodGC need of them. Kinds that cannot be listed and watched are left out.

Guarantees: while the kinds of a group cannot be read, those that it had stay. A kind that is no
longer named stays until the server says that its path does not exist: behind a load balancer, one
server may name it and the next one not yet. To a path that it may only not know yet, a
kube-apiserver responds with 503.
"""

from __future__ import annotations

import threading
from collections import defaultdict

import structlog

from kcm import errors
from kcm.api.custom.partial import new_metadata_resource
from kcm.api.scheme import BUILT_IN, Resource, Scheme
from kcm.store.remote.discovery import Served, ServedKind, discover
from kcm.store.remote.rest import METADATA_LIST, RestClient, path_of

log = structlog.get_logger("kcm.remote")

_NEEDED = frozenset({"list", "watch"})


class RemoteKinds:
    """The kinds of one server, for the processes that share a scheme. Thread-safe."""

    def __init__(self, client: RestClient, scheme: Scheme) -> None:
        self._client = client
        self._scheme = scheme
        self._lock = threading.Lock()
        self._had: list[Resource] = []  # after the last refresh
        self._without_model: dict[ServedKind, Resource] = {}

    def refresh(self) -> None:
        """Asks the server. Raises StoreUnavailable."""
        with self._lock:
            served = discover(self._client)
            if served.failed != self._scheme.undiscovered and served.failed:
                log.warning("The kinds of some groups could not be read", groups=served.failed)
            kinds = self._list_resources(served)
            self._had = [*kinds, *self._list_kept(set(kinds), served)]
            self._scheme.replace_all(self._had, served.failed)

    def _list_resources(self, served: Served) -> list[Resource]:
        """Returns the resources, of each kind first those versions that have a model."""
        by_name: defaultdict[str, list[Resource]] = defaultdict(list)
        for kind in served.kinds:
            if kind.verbs >= _NEEDED:
                resource = self._find_resource(kind)
                by_name[resource.name].append(resource)
        return [version for name in by_name for version in _sort(name, by_name[name])]

    def _find_resource(self, kind: ServedKind) -> Resource:
        built_in = BUILT_IN.at(kind.group, kind.version, kind.plural)
        if built_in is not None and built_in.kind == kind.kind:
            return built_in
        if kind not in self._without_model:
            self._without_model[kind] = new_metadata_resource(
                kind.group, kind.version, kind.plural, kind.kind, namespaced=kind.namespaced
            )
        return self._without_model[kind]

    def _list_kept(self, named: set[Resource], served: Served) -> list[Resource]:
        """Returns the resources that are no longer named and may still be served."""
        return [
            resource
            for resource in self._had
            if resource not in named
            and (resource.api_version in served.failed or self._may_exist(resource))
        ]

    def _may_exist(self, resource: Resource) -> bool:
        try:
            self._client.request(
                "GET", path_of(resource), params={"limit": 1}, accept=METADATA_LIST
            )
        except (errors.NotFound, errors.Forbidden):  # without the right, there is no use of it
            return False
        except errors.KcmError as error:
            log.warning("A kind is no longer named", kind=resource.name, error=str(error))
        return True


def _sort(name: str, versions: list[Resource]) -> list[Resource]:
    """Returns the versions of a kind: those with a model in kcm's order, then the server's."""
    order = {version: number for number, version in enumerate(BUILT_IN.versions(name))}
    return sorted(versions, key=lambda version: order.get(version, len(order)))
