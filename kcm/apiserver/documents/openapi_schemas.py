"""The OpenAPI schemas of the API types, in version 3 or 2."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kcm.api.custom.kinds import CustomObject, CustomResource
from kcm.api.custom.structural_schema import StructuralSchema
from kcm.api.scheme import Resource
from kcm.apiextensions import structure
from kcm.apiextensions.structure import Field, Shape
from kcm.apimachinery.base import MergeKey, MergeSet, Model
from kcm.apimachinery.meta_v1 import ListMeta, ObjectMeta
from kcm.apiserver.documents import openapi_custom
from kcm.apiserver.documents.openapi_machinery import (
    EVICTION,
    META,
    PATCH,
    SCALE,
    STRUCTS,
    TOKEN_REQUEST,
)
from kcm.kinds.descriptions import describe_field

Schema = dict[str, Any]

_PACKAGES = {
    "kcm.apimachinery.meta_v1": META,
    "kcm.api.core_v1": "io.k8s.api.core.v1",
    "kcm.api.admissionregistration_v1": "io.k8s.api.admissionregistration.v1",
    "kcm.api.apps_v1": "io.k8s.api.apps.v1",
    "kcm.api.autoscaling_v1": "io.k8s.api.autoscaling.v1",
    "kcm.api.autoscaling_v2": "io.k8s.api.autoscaling.v2",
    "kcm.api.batch_v1": "io.k8s.api.batch.v1",
    "kcm.api.events_v1": "io.k8s.api.events.v1",
    "kcm.api.authentication_v1": "io.k8s.api.authentication.v1",
    "kcm.api.authorization_v1": "io.k8s.api.authorization.v1",
    "kcm.api.certificates_v1beta1": "io.k8s.api.certificates.v1beta1",
    "kcm.api.certificates_v1": "io.k8s.api.certificates.v1",
    "kcm.api.coordination_v1": "io.k8s.api.coordination.v1",
    "kcm.api.discovery_v1": "io.k8s.api.discovery.v1",
    "kcm.api.networking_v1": "io.k8s.api.networking.v1",
    "kcm.api.flowcontrol_v1": "io.k8s.api.flowcontrol.v1",
    "kcm.api.storagemigration_v1beta1": "io.k8s.api.storagemigration.v1beta1",
    "kcm.api.node_v1": "io.k8s.api.node.v1",
    "kcm.api.policy_v1": "io.k8s.api.policy.v1",
    "kcm.api.resource_v1": "io.k8s.api.resource.v1",
    "kcm.api.rbac_v1": "io.k8s.api.rbac.v1",
    "kcm.api.storage_v1": "io.k8s.api.storage.v1",
    "kcm.api.scheduling_v1": "io.k8s.api.scheduling.v1",
    "kcm.api.apiregistration_v1": "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
    "kcm.api.apiextensions_v1": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
}
_GVKS = {
    SCALE: ("autoscaling", "v1", "Scale"),
    EVICTION: ("policy", "v1", "Eviction"),
    TOKEN_REQUEST: ("authentication.k8s.io", "v1", "TokenRequest"),
}


@dataclass(frozen=True)
class Dialect:
    """The differences between the versions of OpenAPI.

    `refs` is the prefix of references to schemas, `shared` that of references to parameters.
    `body_parameter` says that the body of a request is one of its parameters.
    """

    refs: str
    shared: str
    body_parameter: bool

    def ref(self, name: str) -> Schema:
        return {"$ref": self.refs + name}


V3 = Dialect("#/components/schemas/", "#/components/parameters/", body_parameter=False)
V2 = Dialect("#/definitions/", "#/parameters/", body_parameter=True)

_PLAIN: dict[str, Schema] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "any": {},
}
_SPECIAL = {
    "quantity": ("io.k8s.apimachinery.pkg.api.resource.Quantity", "number"),
    "intstr": ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "int-or-string"),
}


def name_of(model: type[Model]) -> str:
    """Returns the name of a model's schema, such as `io.k8s.api.core.v1.Pod`, as upstream."""
    if issubclass(model, CustomObject):
        return _custom_name(model)
    module = next(part for part in _PACKAGES if model.__module__.startswith(part))
    return f"{_PACKAGES[module]}.{model.__name__}"


def _custom_name(model: type[CustomObject]) -> str:
    """Returns `com.example.stable.v1.CronTab` for a kind of stable.example.com."""
    group, _, version = str(model.model_fields["api_version"].default).rpartition("/")
    parts = [*reversed(group.split(".")), version, str(model.model_fields["kind"].default)]
    return ".".join(parts)


def list_name(resource: Resource) -> str:
    """Returns the name of the schema of a resource's list."""
    if isinstance(resource, CustomResource):
        return name_of(resource.model).removesuffix(resource.kind) + resource.list_kind
    return f"{name_of(resource.model)}List"


def gvk(resource: Resource, suffix: str = "") -> Schema:
    """Returns the x-kubernetes-group-version-kind of a resource, with a `suffix` that of its
    list.
    """
    return {
        "group": resource.group,
        "version": resource.version,
        "kind": resource.list_kind if suffix else resource.kind,
    }


def schemas_of(resources: Iterable[Resource], dialect: Dialect) -> dict[str, Schema]:
    """Returns, by name, the schemas of these resources and of all structs that they refer to."""
    schemas: dict[str, Schema] = {}
    _add(schemas, ListMeta, dialect)
    _add(schemas, ObjectMeta, dialect)
    for resource in resources:
        if isinstance(resource, CustomResource):
            schemas[name_of(resource.model)] = _custom(resource.custom.schema, dialect)
        else:
            _add(schemas, resource.model, dialect)
        schemas[name_of(resource.model)]["x-kubernetes-group-version-kind"] = [gvk(resource)]
        schemas[list_name(resource)] = _list(resource, dialect)
    for name, form in _SPECIAL.values():
        words = describe_field(name.rpartition(".")[2], "")
        schemas[name] = {"type": "string", "description": words}
        if form != "number":
            schemas[name]["format"] = form
    schemas |= _machinery(dialect)
    return dict(sorted(schemas.items()))


def _custom(schema: StructuralSchema, dialect: Dialect) -> Schema:
    """Returns the schema of a custom kind, with apiVersion, kind and metadata.

    In version 2 a kind that keeps unknown fields is just an object: kubectl would reject fields
    that a schema with properties does not name.
    """
    if dialect.body_parameter and schema.preserve:
        return {"type": "object"}
    meta = _meta(dialect)
    embedded = _struct("EmbeddedResource", "", dialect, **meta)["properties"]
    published = openapi_custom.publish_schema(schema.raw, embedded, full=not dialect.body_parameter)
    own = _struct("", "", dialect, **meta)["properties"]
    properties = {**published.get("properties", {}), **own}
    return published | {"type": "object", "properties": properties}


def _meta(dialect: Dialect) -> dict[str, Schema]:
    """Returns the schemas of what every object has."""
    text = {"type": "string"}
    return {"apiVersion": text, "kind": text, "metadata": dialect.ref(name_of(ObjectMeta))}


def _machinery(dialect: Dialect) -> dict[str, Schema]:
    """Returns the schemas of what requests and answers have besides objects."""
    schemas = {
        name: _struct(name, description, dialect, **_fields(fields, dialect))
        for name, (description, fields) in STRUCTS.items()
    }
    for name, (group, version, kind) in _GVKS.items():
        schemas[name]["x-kubernetes-group-version-kind"] = [
            {"group": group, "version": version, "kind": kind}
        ]
    patch = {"type": "object", "description": "A patch in the form that its media type names."}
    return schemas | {PATCH: patch}


def _fields(fields: str, dialect: Dialect) -> dict[str, Schema]:
    """Returns the schemas of fields as `openapi_machinery` writes them."""
    pairs = (field.partition(":") for field in fields.split())
    return {name: _typed(type_ or "string", dialect) for name, _, type_ in pairs}


def _typed(type_: str, dialect: Dialect) -> Schema:
    if type_.startswith("[]"):
        return {"type": "array", "items": _typed(type_[2:], dialect)}
    if type_.startswith("int"):
        return {"type": "integer", "format": type_}
    if type_ == "time":
        return dict(_PLAIN["time"])
    return dialect.ref(type_) if "." in type_ else {"type": type_}


def _struct(name: str, description: str, dialect: Dialect, /, **properties: Schema) -> Schema:
    """Returns the schema of a struct without a model. The fields' descriptions go by its name."""
    model = name.rpartition(".")[2]
    described = {
        field: _with_description(schema, describe_field(model, field), dialect)
        for field, schema in properties.items()
    }
    return _object(description, **described)


def _object(description: str, /, **properties: Schema) -> Schema:
    words = {"description": description} if description else {}
    return {"type": "object"} | words | {"properties": properties}


def _list(resource: Resource, dialect: Dialect) -> Schema:
    schema = _struct(
        "List",
        f"A list of {resource.plural}.",
        dialect,
        apiVersion={"type": "string"},
        items={
            "type": "array",
            "items": dialect.ref(name_of(resource.model)),
            "description": f"List of {resource.plural}.",
        },
        kind={"type": "string"},
        metadata=dialect.ref(name_of(ListMeta)),
    )
    return schema | {
        "required": ["items"],
        "x-kubernetes-group-version-kind": [gvk(resource, "List")],
    }


def _add(schemas: dict[str, Schema], model: type[Model], dialect: Dialect) -> None:
    name = name_of(model)
    if name in schemas:
        return
    schemas[name] = schema = _object(" ".join((model.__doc__ or "").split()))
    if model.kubernetes_atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    for field in structure.fields(model).values():
        written = describe_field(model.__name__, field.name)
        shape = _field(schemas, field, dialect)
        schema["properties"][field.name] = _with_description(shape, written, dialect)


def _with_description(schema: Schema, words: str, dialect: Dialect) -> Schema:
    if not words:
        return schema
    if "$ref" in schema and dialect is not V2:
        schema = {"allOf": [schema]}  # a reference can have no other keys
    return {"description": words} | schema


def _field(schemas: dict[str, Schema], field: Field, dialect: Dialect) -> Schema:
    schema = _schema(schemas, field.shape, dialect)
    if field.shape.kind != "list":
        return _with_extensions(schema, field, dialect)
    if isinstance(field.merge, MergeKey):
        merge = field.merge
        schema |= {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": list(merge.map_keys or (merge.key,)),
        }
        if not merge.patches:
            return schema
        strategy = "merge,retainKeys" if merge.retain_keys else "merge"
        return schema | {
            "x-kubernetes-patch-merge-key": merge.key,
            "x-kubernetes-patch-strategy": strategy,
        }
    if isinstance(field.merge, MergeSet):
        patches = {"x-kubernetes-patch-strategy": "merge"} if field.merge.patches else {}
        return schema | {"x-kubernetes-list-type": "set"} | patches
    schema |= {"x-kubernetes-list-type": "atomic"}
    if field.patch_key is None:
        return schema
    return schema | {
        "x-kubernetes-patch-merge-key": field.patch_key.key,
        "x-kubernetes-patch-strategy": "merge",
    }


def _with_extensions(schema: Schema, field: Field, dialect: Dialect) -> Schema:
    extensions: Schema = {}
    if field.retain_keys:
        extensions["x-kubernetes-patch-strategy"] = "retainKeys"
    if field.atomic and field.shape.kind == "map":
        extensions["x-kubernetes-map-type"] = "atomic"
    if not extensions or "$ref" not in schema or dialect is V2:
        return schema | extensions
    return {"allOf": [schema]} | extensions  # a reference can have no other keys


def _schema(schemas: dict[str, Schema], shape: Shape, dialect: Dialect) -> Schema:
    if shape.kind in _PLAIN:
        return dict(_PLAIN[shape.kind])
    if shape.kind in _SPECIAL:
        return dialect.ref(_SPECIAL[shape.kind][0])
    if shape.kind == "integer":
        return {"type": "integer", "format": f"int{shape.bits}"}
    if shape.kind == "struct":
        assert isinstance(shape.model, type)  # the shape of a struct has its class
        _add(schemas, shape.model, dialect)
        return dialect.ref(name_of(shape.model))
    assert shape.item is not None
    if shape.kind == "list":
        return {"type": "array", "items": _schema(schemas, shape.item, dialect)}
    if shape.item.kind == "any":  # a struct that kcm stores without reading it
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "additionalProperties": _schema(schemas, shape.item, dialect)}
