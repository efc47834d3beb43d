"""What decides about the write that a request asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.admissionregistration_v1 import CREATE, DELETE, UPDATE
from kcm.apiserver.admission.request import AdmissionRequest, DecidesRequest
from kcm.apiserver.bodies import structs
from kcm.apiserver.bodies.structs import StructT
from kcm.apiserver.http.responses import ApiRequest
from kcm.apiserver.http_errors import InternalError
from kcm.store import DeleteOptions

_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
_DECIDED_BEFORE = frozenset({"binding"})  # subresources that are decided about with `decide`


def of_create(request: ApiRequest) -> DecidesRequest | None:
    """Returns what decides about a new object, None if nothing does."""
    return _find(request, CREATE, _write_options(request))


def of_update(request: ApiRequest) -> DecidesRequest | None:
    """Returns what decides about a change, None if nothing does."""
    if request.info.subresource in _DECIDED_BEFORE:
        return None
    return _find(request, UPDATE, _write_options(request))


def of_delete(request: ApiRequest, options: DeleteOptions) -> DecidesRequest | None:
    """Returns what decides about a deletion, None if nothing does."""
    return _find(request, DELETE, _delete_options(request, options))


def decide(request: ApiRequest, sent: StructT, api_version: str) -> StructT:
    """Returns the object of a request that is not stored, such as an Eviction, as webhooks have
    changed it.

    Raises the error of what refuses it, InternalError for what is no such object any more, and
    BadRequest for one with another name.
    """
    decides = _find(request, CREATE, _write_options(request))
    if decides is None:
        return sent
    kind = {"kind": type(sent).__name__, "apiVersion": api_version}
    info, shown = request.info, json.loads(codec.encode(sent))
    place = {"name": info.name, "namespace": info.namespace}
    metadata = {**{k: v for k, v in place.items() if v}, **(shown.get("metadata") or {})}
    before = {**shown, **kind, "metadata": metadata}
    after = decides.decide(before)
    if after is before:
        return sent
    try:
        changed = structs.read(after, type(sent))
    except errors.BadRequest as error:
        raise InternalError.because(error.message) from None
    if (after.get("metadata") or {}).get("name") != metadata.get("name"):
        raise errors.BadRequest(f"name in URL does not match name in {kind['kind']} object")
    return changed


def _find(request: ApiRequest, operation: str, options: Mapping[str, Any]) -> DecidesRequest | None:
    if request.admission is None:
        return None
    return request.admission.find(_asked(request, operation, options))


def _asked(request: ApiRequest, operation: str, options: Mapping[str, Any]) -> AdmissionRequest:
    info = request.info
    return AdmissionRequest(
        operation,
        info.resource,
        request.caller,
        info.subresource,
        info.namespace,
        info.name,
        dry_run=request.dry_run,
        options=options,
        remarks=request.remarks,
    )


def _write_options(request: ApiRequest) -> Mapping[str, Any]:
    given = {name: request.query.get(name) for name in ("fieldManager", "fieldValidation")}
    kind = _OPTIONS.get(request.method, "UpdateOptions")
    options = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    return {**options, **{name: value for name, value in given.items() if value}, **_dry(request)}


def _delete_options(request: ApiRequest, options: DeleteOptions) -> Mapping[str, Any]:
    shown: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
    if options.grace_period_seconds is not None:
        shown["gracePeriodSeconds"] = options.grace_period_seconds
    if options.propagation_policy is not None:
        shown["propagationPolicy"] = options.propagation_policy
    required = {"uid": options.uid, "resourceVersion": options.resource_version}
    if conditions := {name: value for name, value in required.items() if value}:
        shown["preconditions"] = conditions
    return {**shown, **_dry(request)}


def _dry(request: ApiRequest) -> Mapping[str, Any]:
    return {"dryRun": ["All"]} if request.dry_run else {}
