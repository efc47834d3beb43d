"""Request bodies that are no stored kind: Scale, Binding, Eviction, TokenRequest, DeleteOptions.

Source: staging/src/k8s.io/api/{autoscaling,policy,authentication}/v1/types.go and
staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import Field, ValidationError

from kcm import errors
from kcm.api.core_v1 import ObjectReference
from kcm.api.decoding_faults import MOST_FAULTS, field_path
from kcm.apimachinery.base import Bool, Int32, Int64, Model
from kcm.apimachinery.meta_v1 import ObjectMeta

StructT = TypeVar("StructT", bound="Struct")


class Struct(Model):
    """The base of request bodies with apiVersion and kind that are no stored objects."""

    api_version: str | None = None
    kind: str | None = None


class Preconditions(Model):
    """The uid and resourceVersion that an object must have to be deleted."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Struct):
    """How to delete an object, and under which preconditions."""

    grace_period_seconds: Int64 | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: Bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None


class ScaleSpec(Model):
    """The wanted number of replicas."""

    replicas: Int32 = 0


class Scale(Struct):
    """A request to scale an object."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: ScaleSpec = Field(default_factory=ScaleSpec)


class Binding(Struct):
    """A request to bind a pod to a node."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    target: ObjectReference = Field(default_factory=ObjectReference)


class Eviction(Struct):
    """A request to evict a pod."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    delete_options: DeleteOptions | None = None


class BoundObjectReference(Model):
    """The object with which a token becomes invalid."""

    kind: str | None = None
    api_version: str | None = None
    name: str | None = None
    uid: str | None = None


class TokenRequestSpec(Model):
    """What the token is for, how long it is valid, and what it is bound to."""

    audiences: list[str] | None = None
    expiration_seconds: Int64 | None = None
    bound_object_ref: BoundObjectReference | None = None


class TokenRequest(Struct):
    """A request for a token of a service account."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: TokenRequestSpec = Field(default_factory=TokenRequestSpec)


def read(value: Any, model: type[StructT]) -> StructT:
    """Returns the struct that a JSON value holds. Raises BadRequest."""
    try:
        struct = model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        if (count := error.error_count()) > MOST_FAULTS:
            message = f"{model.__name__}: {count} values do not fit it"
            raise errors.BadRequest(message) from None
        first = error.errors(include_url=False)[0]
        where = field_path(first["loc"]) or "the body"
        raise errors.BadRequest(f"{model.__name__}: {where}: {first['msg']}") from None
    if struct.kind not in {None, "", model.__name__}:
        raise errors.BadRequest(
            f"the kind in the data ({struct.kind}) does not match the expected kind "
            f"({model.__name__})"
        )
    return struct
