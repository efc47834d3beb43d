"""The OpenAPI operations of one resource, in version 3 or 2."""

from __future__ import annotations

from typing import Any

from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apiserver.bodies import patches
from kcm.apiserver.computed_kinds import BINDING, COMPONENT_STATUS, is_review
from kcm.apiserver.documents.openapi_schemas import (
    DELETE_OPTIONS,
    PATCH,
    SCALE,
    SCALE_GVK,
    STATUS,
    Dialect,
    Schema,
    gvk,
    list_name,
    name_of,
)

_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_LIST = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit",
    "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_TYPES = {
    "allowWatchBookmarks": "boolean", "sendInitialEvents": "boolean", "watch": "boolean",
    "orphanDependents": "boolean", "force": "boolean", "limit": "integer",
    "timeoutSeconds": "integer", "gracePeriodSeconds": "integer",
}  # fmt: skip
_JSON = "application/json"
_INPUTS = (_JSON, "application/yaml")
_CUSTOM_PATCHES = (patches.JSON_PATCH, patches.MERGE_PATCH, patches.APPLY)
_PATCHES = (patches.JSON_PATCH, patches.MERGE_PATCH, patches.STRATEGIC, patches.APPLY)


def paths_of(resource: Resource, dialect: Dialect) -> dict[str, Any]:
    """Returns the operations of a resource, its status and its scale, by path and method."""
    base = f"/{'apis' if resource.group else 'api'}/{resource.api_version}"
    inside = f"{base}/namespaces/{{namespace}}" if resource.namespaced else base
    collection, object_path = f"{inside}/{resource.plural}", f"{inside}/{resource.plural}/{{name}}"
    make = _Operations(resource, dialect)
    if is_review(resource) or resource is BINDING:
        return {collection: {"post": make.creation(collection)}}
    if resource is COMPONENT_STATUS:
        return {
            collection: {"get": make.listing(collection, "")},
            object_path: {"get": make.one(object_path, "")["get"]},
        }
    paths = {
        collection: make.collection(collection),
        object_path: make.one(object_path, ""),
    }
    if resource.has_status:
        paths[f"{object_path}/status"] = make.one(f"{object_path}/status", "Status")
    if resource.scale is not None:
        paths[f"{object_path}/scale"] = make.one(f"{object_path}/scale", "Scale", SCALE)
    if resource.namespaced:
        everywhere = f"{base}/{resource.plural}"
        paths[everywhere] = {"get": make.listing(everywhere, "ForAllNamespaces")}
    return paths


class _Operations:
    """Builds the operations of one resource."""

    def __init__(self, resource: Resource, dialect: Dialect) -> None:
        self._resource = resource
        self._dialect = dialect
        self._model = name_of(resource.model)
        self._patches = _CUSTOM_PATCHES if isinstance(resource, CustomResource) else _PATCHES

    def collection(self, path: str) -> dict[str, Any]:
        post = self.creation(path)
        delete = self._operation(
            path,
            ("deletecollection", "deleteCollection"),
            _DELETE + _LIST,
            takes=DELETE_OPTIONS,
            returns=STATUS,
        )
        return {"get": self.listing(path, ""), "post": post, "delete": delete}

    def creation(self, path: str) -> Schema:
        return self._operation(
            path, ("post", "create"), _WRITE, takes=self._model, returns=self._model
        )

    def listing(self, path: str, suffix: str) -> Schema:
        returns = list_name(self._resource)
        return self._operation(path, ("list", "list"), _LIST, returns=returns, suffix=suffix)

    def one(self, path: str, suffix: str, model: str = "") -> dict[str, Any]:
        """Returns the operations on one object, or on its subresource that `suffix` names.

        `model` is the name of the subresource's schema, "" if it is the object's.
        """
        model = model or self._model
        operations = {
            "get": self._operation(path, ("get", "read"), (), returns=model, suffix=suffix),
            "put": self._operation(
                path, ("put", "replace"), _WRITE, takes=model, returns=model, suffix=suffix
            ),
            "patch": self._operation(
                path,
                ("patch", "patch"),
                (*_WRITE, "force"),
                takes=PATCH,
                returns=model,
                suffix=suffix,
            ),
        }
        if not suffix:
            operations["delete"] = self._operation(
                path, ("delete", "delete"), _DELETE, takes=DELETE_OPTIONS, returns=STATUS
            )
        return operations

    def _operation(
        self, path: str, names: tuple[str, str], query: tuple[str, ...], *, takes: str = "",
        returns: str, suffix: str = "",
    ) -> Schema:  # fmt: skip
        resource, (action, verb) = self._resource, names
        group = (resource.group.partition(".")[0] or "core").title()
        scope = "Namespaced" if "{namespace}" in path else ""
        parameters = [self._parameter(name, "query") for name in query]
        parameters += [
            self._parameter(name, "path") for name in ("namespace", "name") if f"{{{name}}}" in path
        ]
        operation: Schema = {
            "operationId": (
                f"{verb}{group}{resource.version.upper()}{scope}{resource.kind}{suffix}"
            ),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self._kind(returns),
            "responses": {"200": self._response(returns)},
        }
        if takes:
            self._add_body(operation, parameters, takes)
        return operation | {"parameters": parameters}

    def _kind(self, returns: str) -> Schema:
        """Returns the kind of an operation: upstream names Scale for those of built-in kinds."""
        if returns == SCALE and not isinstance(self._resource, CustomResource):
            return dict(SCALE_GVK)
        return gvk(self._resource)

    def _add_body(self, operation: Schema, parameters: list[Schema], takes: str) -> None:
        schema = self._dialect.ref(takes)
        media = self._patches if takes == PATCH else _INPUTS
        if self._dialect.body_parameter:
            parameters.append({"name": "body", "in": "body", "required": True, "schema": schema})
            operation["consumes"] = list(media)
        else:
            content = {name: {"schema": schema} for name in media}
            operation["requestBody"] = {"content": content, "required": takes != DELETE_OPTIONS}

    def _parameter(self, name: str, place: str) -> Schema:
        kind = _TYPES.get(name, "string")
        parameter: Schema = {"name": name, "in": place}
        if place == "path":
            parameter["required"] = True
        if self._dialect.body_parameter:
            return parameter | {"type": kind}
        return parameter | {"schema": {"type": kind}}

    def _response(self, name: str) -> Schema:
        schema = self._dialect.ref(name)
        if self._dialect.body_parameter:
            return {"description": "OK", "schema": schema}
        return {"description": "OK", "content": {_JSON: {"schema": schema}}}
