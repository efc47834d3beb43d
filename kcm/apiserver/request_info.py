"""Request info: the resource, namespace, name and subresource that a path identifies.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kcm.api.scheme import Kinds, Resource
from kcm.apiserver import computed_kinds
from kcm.apiserver.http_errors import PathNotFound

NOT_DELETED_TOGETHER = frozenset({"namespaces"})  # kinds without deletecollection
# below namespaces/<name>, every other name is a resource in the namespace
_CLUSTER = frozenset({"status", "finalize"})
PROXIED = frozenset({"pods", "services", "nodes"})  # resources with the subresource proxy


@dataclass(frozen=True)
class RequestInfo:
    """The resource of a request, and the namespace, name and subresource if the path has them."""

    resource: Resource
    namespace: str = ""  # empty for objects without one, and for all namespaces
    name: str = ""
    subresource: str = ""

    @cached_property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def deletable_together(self) -> bool:
        """Reports whether a DELETE of the collection is allowed here."""
        inside = bool(self.namespace) or not self.resource.namespaced
        return inside and self.resource.name not in NOT_DELETED_TOGETHER


def parse(path: str, kinds: Kinds) -> RequestInfo:
    """Returns the request info of a path below /api/v1 or /apis/<group>/<version>.

    `kinds` are those that the server stores. Raises PathNotFound.
    """
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, version, rest = "", parts[1] if len(parts) > 1 else "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 2:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise PathNotFound
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in _CLUSTER:
        namespace, rest = rest[1], rest[2:]
    return _find(kinds, (group, version), namespace, rest)


def _find(
    kinds: Kinds, served: tuple[str, str], namespace: str, rest: Sequence[str]
) -> RequestInfo:
    if rest[2:3] == ["proxy"] and rest[0] in PROXIED and not served[0]:
        rest = rest[:3]  # the rest is a path of another server
    if not rest or len(rest) > 3 or not all(rest):
        raise PathNotFound
    resource = find(kinds, *served, rest[0])
    if namespace and not resource.namespaced:
        raise PathNotFound
    name, subresource = (*rest[1:], "", "")[:2]
    if resource.namespaced and name and not namespace:
        raise PathNotFound
    return RequestInfo(resource, namespace, name, subresource)


def find(kinds: Kinds, group: str, version: str, plural: str) -> Resource:
    """Returns the resource that is served at a group, version and plural. Raises PathNotFound."""
    resource = computed_kinds.find(group, version, plural, kinds) or kinds.at(
        group, version, plural
    )
    if resource is None:
        raise PathNotFound
    return resource
