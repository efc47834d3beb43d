"""Decodes request bodies: JSON, YAML and protobuf.

Source: staging/src/k8s.io/apimachinery/pkg/runtime/serializer, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from typing import cast

from kcm import errors
from kcm.api import codec
from kcm.api.custom.kinds import CustomResource
from kcm.apimachinery import nesting
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.http.bodies import (
    client_warnings,
    fieldvalidation,
    protobuf,
    structs,
    typeerrors,
)
from kcm.apiserver.http.bodies.structs import StructT
from kcm.apiserver.http.responses import ApiRequest, dry_run
from kcm.apiserver.http_errors import UnsupportedMediaType
from kcm.redisio import greenlets
from kcm.store import DeleteOptions
from kcm.store.options import PropagationPolicy

NO_VERSION = (None, "", "0")  # resourceVersions of clients that mean whatever is stored
_JSON = frozenset({"", "application/json", "text/json"})
_YAML = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})
_POLICIES = ("Background", "Foreground", "Orphan")
# Compact, as `fieldvalidation.duplicates` is quick with that.
_encode_compactly = json.JSONEncoder(separators=(",", ":")).encode


def to_json(content_type: str, body: bytes, repeated: list[str] | None = None) -> bytes:
    """Returns the body as JSON.

    `repeated` gets what `load_yaml_documents` says about duplicate keys. Raises
    UnsupportedMediaType, and BadRequest if the body cannot be converted or is nested too deep.
    """
    if content_type in _JSON:
        text = body
    elif content_type in _YAML:
        documents = codec.load_yaml_documents(body, "the body", repeated=repeated)
        if len(documents) != 1:
            raise errors.BadRequest("the body must be exactly one YAML document")
        text = _encode_compactly(documents[0]).encode()
    elif content_type == protobuf.CONTENT_TYPE:
        text = _encode_compactly(protobuf.decode(body)).encode()
        greenlets.raise_if_many_values(text)
    else:
        raise _unknown_format(content_type)
    nesting.check(text)
    return text


def _unknown_format(content_type: str) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format ({content_type}) - accepted media "
        "types include: application/json, application/yaml"
    )


def read_object(request: ApiRequest) -> tuple[KubeObject, list[str]]:
    """Returns the object in the body of a create or update, and warnings about it.

    The object gets the namespace of the URL. Raises BadRequest, Invalid and UnsupportedMediaType.
    """
    mode = fieldvalidation.mode_of(request.query.get("fieldValidation", ""))
    resource = request.info.resource
    if request.content_type == protobuf.CONTENT_TYPE and isinstance(resource, CustomResource):
        raise UnsupportedMediaType(client_warnings.NO_PROTOBUF)
    repeated: list[str] = []
    text = to_json(request.content_type, request.body, repeated)
    try:
        sent = codec.decode(text, resource, keep_unknown=True)
    except errors.WrongType as error:
        raise typeerrors.in_body(error, resource) from None
    except errors.NotJson as error:
        raise typeerrors.unrecognized(error, resource, text) from None
    obj = client_warnings.prune(sent)
    warnings = fieldvalidation.check(sent, obj, text, mode, repeated) + client_warnings.of(obj)
    info = request.info
    if info.namespace and obj.namespace and obj.namespace != info.namespace:
        raise errors.BadRequest(
            f"the namespace of the provided object does not match the namespace sent on the "
            f"request ({obj.namespace} does not match {info.namespace})"
        )
    namespace = info.namespace or None
    if obj.metadata.namespace != namespace:
        obj = obj.with_metadata(namespace=namespace)
    return obj, warnings


def read_struct(request: ApiRequest, model: type[StructT]) -> StructT:
    """Returns a body that is no stored kind as `model`. An empty body has no field set.

    Raises BadRequest and UnsupportedMediaType.
    """
    if not request.body.strip():
        return model()
    try:
        value = json.loads(to_json(request.content_type, request.body))
    except (ValueError, RecursionError) as error:
        raise errors.BadRequest(f"the body is not JSON: {error}") from None
    return structs.read(value, model)


def read_delete_options(request: ApiRequest) -> tuple[DeleteOptions, bool]:
    """Returns the options of a delete, and whether it is a dry run.

    The body takes precedence over the query. Raises BadRequest and Invalid.
    """
    options = read_struct(request, structs.DeleteOptions)
    query = request.query
    if options.grace_period_seconds is None:
        options.grace_period_seconds = _seconds(query.get("gracePeriodSeconds", ""))
    if options.orphan_dependents is None and "orphanDependents" in query:
        options.orphan_dependents = request.flag("orphanDependents")
    options.propagation_policy = options.propagation_policy or query.get("propagationPolicy")
    if not options.dry_run and query.get("dryRun"):
        options.dry_run = [query["dryRun"]]
    return convert_delete_options(options)


def names_other_version(named: str | None, obj: KubeObject) -> bool:
    """Reports whether the resourceVersion that a client names is not that of the object. None, ""
    and "0" name whatever is stored.
    """
    return named not in (*NO_VERSION, obj.metadata.resource_version)


def convert_delete_options(body: structs.DeleteOptions) -> tuple[DeleteOptions, bool]:
    """Returns the store's form of delete options, and whether they ask for a dry run.

    Raises BadRequest and Invalid.
    """
    _check_policy(body)
    policy = body.propagation_policy or None
    if body.orphan_dependents is not None:
        policy = "Orphan" if body.orphan_dependents else "Background"
    conditions = body.preconditions or structs.Preconditions()
    options = DeleteOptions(
        grace_period_seconds=body.grace_period_seconds,
        propagation_policy=cast("PropagationPolicy | None", policy),
        uid=conditions.uid or "",
        resource_version=conditions.resource_version or "",
    )
    words = [dry_run(word) for word in body.dry_run or ()]  # all entries are checked
    return options, any(words)


def _check_policy(options: structs.DeleteOptions) -> None:
    policy, faults = options.propagation_policy, []
    if policy and options.orphan_dependents is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        faults.append(errors.FieldError("Invalid value", "propagationPolicy", policy, why))
    if policy and policy not in _POLICIES:
        supported = ", ".join(f'"{one}"' for one in (*_POLICIES, "nil"))
        why = f"supported values: {supported}"
        faults.append(errors.FieldError("Unsupported value", "propagationPolicy", policy, why))
    if faults:
        raise errors.Invalid(faults, kind="DeleteOptions.meta.k8s.io")


def _seconds(text: str) -> int | None:
    try:
        return int(text) if text else None
    except ValueError:
        raise errors.BadRequest(
            f"gracePeriodSeconds: {errors.shorten(text)!r} is not a number"
        ) from None
