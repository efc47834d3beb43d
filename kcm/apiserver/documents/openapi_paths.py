"""The OpenAPI operations of one resource, in version 3 or 2.

Source of names and actions: staging/src/k8s.io/apiserver/pkg/endpoints/installer.go, Kubernetes
1.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kcm.api.core_v1.pods import Binding
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apiserver.documents.discovery import list_verbs
from kcm.apiserver.documents.openapi_machinery import (
    DELETE_OPTIONS,
    EVICTION,
    PATCH,
    SCALE,
    STATUS,
    TOKEN_REQUEST,
    WATCH_EVENT,
)
from kcm.apiserver.documents.openapi_pages import camel, tag
from kcm.apiserver.documents.openapi_parameters import (
    DELETE,
    LIST,
    OPTIONS,
    WRITE,
    write_parameters,
)
from kcm.apiserver.documents.openapi_schemas import Dialect, Schema, gvk, list_name, name_of
from kcm.apiserver.http.bodies import patches
from kcm.apiserver.objects.subresources import DescribedSubresource, describe_subresources
from kcm.apiserver.objects.verbs import RETURN_DELETED

_JSON, _YAML = "application/json", "application/yaml"
_CUSTOM_PATCHES = (patches.JSON_PATCH, patches.MERGE_PATCH, patches.APPLY)
_PATCHES = (patches.JSON_PATCH, patches.MERGE_PATCH, patches.STRATEGIC, patches.APPLY)
_METHODS = {"create": "post", "delete": "delete", "get": "get", "patch": "patch", "update": "put"}
_SUBRESOURCES = {"Binding": name_of(Binding), "Eviction": EVICTION, "Scale": SCALE,
                 "TokenRequest": TOKEN_REQUEST}  # fmt: skip
# A collection is deleted as it is listed, but not watched.
_SELECTING = tuple(name for name in LIST if name not in ("allowWatchBookmarks", "watch"))
_UNAUTHORIZED = {"401": {"description": "Unauthorized"}}


@dataclass(frozen=True)
class _Verb:
    """How the operations of a verb are written.

    `name` begins their ids and `infix` stands before the scope in them; `{}` in `words` is the
    kind. `codes` are those of success.
    """

    method: str
    action: str
    name: str
    words: str
    codes: tuple[str, ...] = ("200",)
    parameters: tuple[str, ...] = ()
    infix: str = ""


_COLLECTION = {
    "list": _Verb("get", "list", "list", "Lists or watches objects of kind {}.", parameters=LIST),
    "create": _Verb(
        "post", "post", "create", "Creates {}.", ("200", "201", "202"), parameters=WRITE
    ),
    "deletecollection": _Verb(
        "delete", "deletecollection", "delete", "Deletes a collection of {}.",
        parameters=(*DELETE, *_SELECTING), infix="Collection",
    ),
}  # fmt: skip
_OBJECT = {
    "get": _Verb("get", "get", "read", "Reads {}."),
    "update": _Verb("put", "put", "replace", "Replaces {}.", ("200", "201"), WRITE),
    "patch": _Verb("patch", "patch", "patch", "Changes parts of {}.", ("200", "201"),
                   (*WRITE, "force")),
    "delete": _Verb("delete", "delete", "delete", "Deletes {}.", ("200", "202"), DELETE),
}  # fmt: skip
_WATCH = _Verb("get", "watch", "watch", "Watches {}. Deprecated: a list with `watch` does so, too.")
_WATCH_LIST = _Verb("get", "watchlist", "watch", _WATCH.words)


def paths_of(resource: Resource, dialect: Dialect) -> dict[str, Any]:
    """Returns the operations of a resource and its subresources, by path and method."""
    make = _Operations(resource, dialect)
    base = f"/{'apis' if resource.group else 'api'}/{resource.api_version}"
    inside = f"{base}/namespaces/{{namespace}}" if resource.namespaced else base
    collection, object_path = f"{inside}/{resource.plural}", f"{inside}/{resource.plural}/{{name}}"
    verbs = list_verbs(resource)
    paths = {
        collection: make.item(collection, [_COLLECTION[v] for v in verbs if v in _COLLECTION]),
        object_path: make.item(object_path, [_OBJECT[v] for v in verbs if v in _OBJECT]),
    }
    for subresource in describe_subresources(resource):
        path = f"{object_path}/{subresource.name}"
        paths[path] = make.subresource(path, subresource)
        if subresource.name == "proxy":
            path = f"{path}/{{path}}"
            paths[path] = make.subresource(path, subresource)
    everywhere = f"{base}/{resource.plural}"
    if resource.namespaced and "list" in verbs:
        paths[everywhere] = make.item(everywhere, [_COLLECTION["list"]], "ForAllNamespaces")
    if "watch" in verbs and not isinstance(resource, CustomResource):
        paths |= make.watches(base, (collection, object_path, everywhere))
    return {path: item for path, item in paths.items() if set(item) - {"parameters"}}


class _Operations:
    """Builds the operations of one resource."""

    def __init__(self, resource: Resource, dialect: Dialect) -> None:
        self._resource = resource
        self._dialect = dialect
        self._model = name_of(resource.model)
        self._patches = _CUSTOM_PATCHES if isinstance(resource, CustomResource) else _PATCHES

    def item(self, path: str, verbs: Iterable[_Verb], suffix: str = "") -> Schema:
        """Returns the operations of verbs on objects or collections of them."""
        item = self._item(path, ("pretty",))
        for verb in verbs:
            takes, returns = self._bodies(verb)
            item[verb.method] = self._operation(path, verb, suffix, takes, returns)
        return item

    def _bodies(self, verb: _Verb) -> tuple[str, str]:
        """Returns the schemas of what an operation takes, "" if that is nothing, and returns."""
        match verb.action:
            case "list":
                return "", list_name(self._resource)
            case "delete" | "deletecollection":
                whole = verb.action == "delete" and self._resource.name in RETURN_DELETED
                return DELETE_OPTIONS, self._model if whole else STATUS
            case "patch":
                return PATCH, self._model
            case "post" | "put":
                return self._model, self._model
        return "", self._model

    def watches(self, base: str, paths: Iterable[str]) -> dict[str, Schema]:
        """Returns the deprecated operations that watch the objects at paths."""
        items = {}
        for path in paths:
            at = path.replace(base, f"{base}/watch", 1)
            one = path.endswith("}")
            suffix = "" if one else "List"
            if self._resource.namespaced and "{namespace}" not in path:
                suffix = "ListForAllNamespaces"
            verb = _WATCH if one else _WATCH_LIST
            item = self._item(at, ("pretty", *LIST))
            items[at] = item | {"get": self._operation(at, verb, suffix, "", WATCH_EVENT)}
        return items

    def subresource(self, path: str, sub: DescribedSubresource) -> Schema:
        """Returns the operations on a subresource."""
        if sub.name in OPTIONS and sub.name != "log":
            return self._connections(path, sub)
        options = OPTIONS.get(sub.name, ("pretty",))
        item = self._item(path, options)
        model = _SUBRESOURCES.get(sub.kind, self._model)
        for name in sub.verbs:
            verb = (_COLLECTION if name == "create" else _OBJECT)[name]
            takes = {"get": "", "patch": PATCH}.get(name, model)
            returns = "" if sub.name == "log" else model
            operation = self._operation(path, verb, sub.name.title(), takes, returns)
            item[verb.method] = operation | {"x-kubernetes-group-version-kind": self._kind(sub)}
        return item

    def _connections(self, path: str, sub: DescribedSubresource) -> Schema:
        item = self._item(path, OPTIONS[sub.name])
        methods = [_METHODS[verb] for verb in sub.verbs]
        if sub.name == "proxy":
            methods += ["options", "head"]
        suffix = sub.name.title() + ("WithPath" if path.endswith("}") else "")
        for method in methods:
            words = f"Connects {method.upper()} requests to {sub.name} of {{}}."
            verb = _Verb(method, "connect", "connect", words, infix=method.title())
            operation = self._operation(path, verb, suffix, "", "")
            item[method] = operation | {"x-kubernetes-group-version-kind": self._kind(sub)}
        return item

    def _kind(self, sub: DescribedSubresource) -> Schema:
        """Returns the kind of a subresource: upstream names Scale for those of built-in kinds."""
        if isinstance(self._resource, CustomResource):
            return gvk(self._resource)
        return {"group": sub.group, "version": sub.version, "kind": sub.kind}

    def _item(self, path: str, query: Iterable[str]) -> Schema:
        """Returns the parameters that all operations of a path have."""
        names = [name for name in ("namespace", "name", "path") if f"{{{name}}}" in path]
        return {"parameters": write_parameters([*names, *query], self._dialect)}

    def _operation(self, path: str, verb: _Verb, suffix: str, takes: str, returns: str) -> Schema:
        resource = self._resource
        group, version = resource.group or "core", resource.version
        scope = "Namespaced" if "{namespace}" in path else ""
        named = f"{camel(group)}{version.capitalize()}{verb.infix}{scope}{resource.kind}{suffix}"
        operation: Schema = {
            "operationId": verb.name + named,
            "description": verb.words.format(resource.kind),
            "tags": [tag(group, version)],
            "x-kubernetes-action": verb.action,
            "x-kubernetes-group-version-kind": gvk(resource),
        }
        # An empty list does not survive clients that read documents and write them again.
        if verb.parameters:
            operation["parameters"] = write_parameters(verb.parameters, self._dialect)
        self._add_body(operation, takes)
        self._add_responses(operation, verb, returns)
        return operation

    def _add_body(self, operation: Schema, takes: str) -> None:
        if not takes:
            return
        schema = self._dialect.ref(takes)
        media = self._patches if takes == PATCH else (_JSON, _YAML)
        required = takes != DELETE_OPTIONS
        if self._dialect.body_parameter:
            body = {"name": "body", "in": "body", "required": required, "schema": schema}
            operation["parameters"] = [*operation.get("parameters", ()), body]
            operation["consumes"] = list(media)
        else:
            content = {name: {"schema": schema} for name in media}
            operation["requestBody"] = {"content": content, "required": required}

    def _add_responses(self, operation: Schema, verb: _Verb, returns: str) -> None:
        schema = self._dialect.ref(returns) if returns else {"type": "string"}
        media = [_JSON] if returns else ["text/plain" if verb.action == "get" else "*/*"]
        if self._dialect.body_parameter:
            shown: Schema = {"schema": schema}
            operation["produces"] = media
        else:
            shown = {"content": {name: {"schema": schema} for name in media}}
        words = {"200": "OK", "201": "Created", "202": "Accepted"}
        responses = {code: {"description": words[code]} | shown for code in verb.codes}
        operation["responses"] = responses | _UNAUTHORIZED
