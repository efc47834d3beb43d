"""The attributes of a request on which authorization decides.

They are derived from the path alone, whether or not it is served, so that nothing is revealed about
a path before its request was authorized.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go and
endpoints/handlers/responsewriters/errors.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kcm import errors
from kcm.apiextensions.field_selectors import FieldSelector
from kcm.apimachinery import names
from kcm.apiserver.request import Request, truth
from kcm.apiserver.request_info import RequestInfo

# --- Users and their groups.
#
# Source: staging/src/k8s.io/apiserver/pkg/authentication/user and
# pkg/authentication/serviceaccount, Kubernetes 1.33.


MASTERS = "system:masters"  # may send every request, whatever the roles are
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"
SERVICE_ACCOUNTS = "system:serviceaccounts"
NODES = "system:nodes"
_SERVICE_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True)
class User:
    """A user as authentication identifies it: name, uid, groups and further attributes
    (`extra`).
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def with_groups(self, *groups: str) -> User:
        """Returns this user with these groups added."""
        new = [group for group in groups if group not in self.groups]
        return replace(self, groups=(*self.groups, *new)) if new else self


ANYBODY = User(ANONYMOUS, groups=(UNAUTHENTICATED,))
ADMIN = User("kubernetes-admin", groups=(MASTERS,))  # the user of the generated token


def as_authenticated(user: User) -> User:
    """Returns the user with the group system:authenticated, unless it is system:anonymous."""
    return user if user.name == ANONYMOUS else user.with_groups(AUTHENTICATED)


def service_account(name: str) -> tuple[str, str] | None:
    """Returns namespace and name of the service account with this user name.

    Returns None for the name of another user.
    """
    namespace, colon, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
    if not name.startswith(_SERVICE_ACCOUNT) or not (namespace and colon and account):
        return None
    return None if ":" in account else (namespace, account)


def service_account_name(namespace: str, name: str) -> str:
    """Returns the user name of a service account."""
    return f"{_SERVICE_ACCOUNT}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, str]:
    """Returns the groups in which all service accounts of a namespace are."""
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")


def quote_list(words: Iterable[str]) -> str:
    """Returns a list as upstream's messages print it: `["a" "b"]`."""
    return "[" + " ".join(f'"{word}"' for word in words) + "]"


_VERBS = {
    "POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch",
    "DELETE": "delete",
}  # fmt: skip
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


@dataclass(frozen=True)
class Attributes:
    """A verb on a resource, or on a path that belongs to no resource."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""  # set for a path that belongs to no resource, otherwise empty
    # fields that a list or watch is restricted to by its field selector, with their values
    fields: tuple[tuple[str, str], ...] = ()

    @property
    def full_resource(self) -> str:
        """Returns the resource as rules write it, such as `pods` or `pods/log`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def __str__(self) -> str:
        if self.path:
            return f'{self.verb} path "{self.path}"'
        place = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return f'{self.verb} resource "{self.full_resource}" in API group "{self.group}" {place}'


def of(request: Request) -> Attributes:
    """Returns the attributes of a request. Raises BadRequest for an invalid query."""
    parts = request.path.strip("/").split("/")
    if len(parts) < 3 or parts[0] not in {"api", "apis"}:
        return Attributes(request.method.lower(), path=request.path or "/")
    group, rest = "", parts[1:]
    if parts[0] == "apis":
        if len(parts) < 4:
            return Attributes(request.method.lower(), path=request.path)
        group, rest = parts[1], parts[2:]
    version, rest = rest[0], rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    resource, name, subresource = (*rest, "", "")[:3]
    verb, name, fields = _verb(request, name, subresource)
    return Attributes(verb, group, version, resource, subresource, namespace, name, fields=fields)


def _verb(
    request: Request, name: str, subresource: str
) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """Returns the verb of a request, the name of its object, and the fields of its selector.

    A list or watch that its field selector restricts to one object has that object's name. Upstream
    ignores the parameter `watch` beside a name. Here it makes the request a watch, which must be
    allowed as one.
    """
    verb = _VERBS.get(request.method, "")
    if verb == "delete" and not name:
        return "deletecollection", "", _fields(request)
    if verb != "get" or subresource:
        return verb, name, ()
    watch = request.method == "GET" and truth(request.query, "watch")
    if not name:
        fields = _fields(request)
        return "watch" if watch else "list", _only_name(fields), fields
    return "watch" if watch else "get", name, ()


def _fields(request: Request) -> tuple[tuple[str, str], ...]:
    try:
        terms = FieldSelector.parse(request.query.get("fieldSelector", "")).terms
    except errors.BadRequest:  # reported to users who may list
        return ()
    return tuple((term.field, term.value) for term in terms if term.field and not term.negated)


def _only_name(fields: tuple[tuple[str, str], ...]) -> str:
    for field, value in fields:
        if field == "metadata.name":
            return "" if names.path_segment_faults(value) else value
    return ""


def agree(attributes: Attributes, info: RequestInfo) -> bool:
    """Reports whether the attributes that were authorized are those of what will be served."""
    resource = info.resource
    narrowed = attributes.verb in {"list", "watch"} and not info.name
    named = narrowed or attributes.name == info.name
    inside = info.namespace == attributes.namespace or resource.name == "namespaces"
    return (
        named
        and inside
        and (
            (resource.group, resource.version, resource.plural, info.subresource)
            == (attributes.group, attributes.version, attributes.resource, attributes.subresource)
        )
    )


def forbidden(who: str, attributes: Attributes, reason: str) -> errors.Forbidden:
    """Returns the Forbidden error for a denied request, in upstream's words.

    `who` is the user's name.
    """
    text = f'User "{who}" cannot {attributes}' + (f": {reason}" if reason else "")
    if attributes.path:
        return errors.Forbidden(f"forbidden: {text}")
    group = f".{attributes.group}" if attributes.group else ""
    resource = f"{attributes.resource}{group}"
    name = f' "{attributes.name}"' if attributes.name else ""
    return errors.Forbidden(
        f"{resource}{name} is forbidden: {text}", resource=resource, name=attributes.name
    )
