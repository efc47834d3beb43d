"""Request bodies: JSON, or YAML turned into it.

Source: staging/src/k8s.io/apimachinery/pkg/runtime/serializer, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from typing import Any, cast

from kcm import errors
from kcm.api import codec
from kcm.api.meta_v1 import KubeObject
from kcm.apiserver import fieldvalidation, protobuf
from kcm.apiserver.answers import Call
from kcm.apiserver.refusals import UnsupportedMediaType
from kcm.store import DeleteOptions
from kcm.store.rules import PropagationPolicy

MAX_BODY = 3 * 1024 * 1024  # bytes, as upstream's limitedReader

_JSON = frozenset({"", "application/json", "text/json"})
_YAML = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})
_POLICIES = ("Background", "Foreground", "Orphan")


def json_of(content_type: str, body: bytes) -> bytes:
    """The body as JSON. Raises: BadRequest, UnsupportedMediaType."""
    if content_type in _JSON:
        return body
    if content_type in _YAML:
        documents = codec.load_yaml_documents(body, "the body")
        if len(documents) != 1:
            raise errors.BadRequest("the body must be exactly one YAML document")
        return json.dumps(documents[0]).encode()
    if content_type == protobuf.CONTENT_TYPE:
        return json.dumps(protobuf.decode(body)).encode()
    raise UnsupportedMediaType(
        f"the body of the request was in an unknown format ({content_type}) - accepted media "
        "types include: application/json, application/yaml"
    )


def object_of(call: Call) -> tuple[KubeObject, list[str]]:
    """The object in a create or update, in the namespace of its URL, and warnings about it.

    Raises: BadRequest, Invalid, UnsupportedMediaType.
    """
    mode = fieldvalidation.mode_of(call.query.get("fieldValidation", ""))
    text = json_of(call.content_type, call.body)
    obj = codec.decode(text, call.target.resource)
    warnings = fieldvalidation.check(obj, text, mode)
    target = call.target
    if target.namespace and obj.namespace and obj.namespace != target.namespace:
        raise errors.BadRequest(
            f"the namespace of the provided object does not match the namespace sent on the "
            f"request ({obj.namespace} does not match {target.namespace})"
        )
    namespace = target.namespace or None
    if obj.metadata.namespace != namespace:
        obj = obj.with_metadata(namespace=namespace)
    return obj, warnings


def struct_of(call: Call, *kinds: str) -> dict[str, Any]:
    """A small body that is no stored kind (Scale, Binding, DeleteOptions); empty without one.

    Raises: BadRequest, UnsupportedMediaType.
    """
    if not call.body.strip():
        return {}
    try:
        found = json.loads(json_of(call.content_type, call.body))
    except (ValueError, RecursionError) as error:
        raise errors.BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise errors.BadRequest("the body must be a JSON object")
    if found.get("kind", kinds[0]) not in kinds:
        raise errors.BadRequest(
            f"the kind in the data ({found['kind']}) does not match the expected kind ({kinds[0]})"
        )
    return found


def delete_options(call: Call) -> tuple[DeleteOptions, bool]:
    """How to delete, and whether that is a dry run: from the body, else from the query.

    Raises: BadRequest.
    """
    found = struct_of(call, "DeleteOptions")
    words = found.get("dryRun") or [call.query.get("dryRun", "")]
    grace = found.get("gracePeriodSeconds", call.query.get("gracePeriodSeconds"))
    policy = found.get("propagationPolicy") or call.query.get("propagationPolicy") or None
    if found.get("orphanDependents", _orphan(call)) is not None:
        orphan = found.get("orphanDependents", _orphan(call))
        policy = "Orphan" if orphan else "Background"
    if policy is not None and policy not in _POLICIES:
        supported = ", ".join(f'"{known}"' for known in _POLICIES)
        raise errors.BadRequest(f'propagationPolicy: Unsupported value: "{policy}": {supported}')
    conditions = found.get("preconditions") or {}
    dry = words not in ([""], [])
    if dry and words != ["All"]:
        raise errors.BadRequest(f'dryRun: Unsupported value: {words}: supported values: "All"')
    return DeleteOptions(
        grace_period_seconds=_seconds(grace),
        propagation_policy=cast("PropagationPolicy | None", policy),
        uid=str(conditions.get("uid") or ""),
        resource_version=str(conditions.get("resourceVersion") or ""),
    ), dry


def _orphan(call: Call) -> bool | None:
    return call.flag("orphanDependents") if "orphanDependents" in call.query else None


def _seconds(value: Any) -> int | None:
    if value is None or value == "":
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise errors.BadRequest(f"gracePeriodSeconds: {value!r} is not a number") from None
