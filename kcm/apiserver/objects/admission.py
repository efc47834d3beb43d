"""What a request tells admission of itself, and the admission of what is not stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.admissionregistration_v1 import CREATE
from kcm.apiserver.admission.request import AdmissionRequest
from kcm.apiserver.http.bodies import structs
from kcm.apiserver.http.bodies.structs import StructT
from kcm.apiserver.http.responses import ApiRequest
from kcm.apiserver.http_errors import InternalError
from kcm.store import DeleteOptions, Store
from kcm.store.admission.plugin import Write

_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}


def write_request(request: ApiRequest) -> AdmissionRequest:
    """Returns what plugins get to know of a request that creates or changes an object."""
    given = {name: request.query.get(name) for name in ("fieldManager", "fieldValidation")}
    kind = _OPTIONS.get(request.method, "UpdateOptions")
    options = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    return _build(request, {**options, **{name: value for name, value in given.items() if value}})


def delete_request(request: ApiRequest, options: DeleteOptions) -> AdmissionRequest:
    """Returns what plugins get to know of a request that deletes."""
    shown: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
    if options.grace_period_seconds is not None:
        shown["gracePeriodSeconds"] = options.grace_period_seconds
    if options.propagation_policy is not None:
        shown["propagationPolicy"] = options.propagation_policy
    required = {"uid": options.uid, "resourceVersion": options.resource_version}
    if conditions := {name: value for name, value in required.items() if value}:
        shown["preconditions"] = conditions
    return _build(request, shown)


def _build(request: ApiRequest, options: Mapping[str, Any]) -> AdmissionRequest:
    info, dry_run = request.info, request.dry_run
    return AdmissionRequest(
        dry_run=dry_run,
        caller=request.caller,
        namespace=info.namespace,
        name=info.name,
        options={**options, "dryRun": ["All"]} if dry_run else options,
        remarks=request.remarks,
    )


def admit_struct(store: Store, request: ApiRequest, sent: StructT, api_version: str) -> StructT:
    """Returns the object of a request that is not stored, such as an Eviction, as plugins have
    changed it.

    Raises the error of what refuses it, InternalError for what is no such object any more, and
    BadRequest for one with another name.
    """
    kind = {"kind": type(sent).__name__, "apiVersion": api_version}
    info, shown = request.info, json.loads(codec.encode(sent))
    place = {"name": info.name, "namespace": info.namespace}
    metadata = {**{k: v for k, v in place.items() if v}, **(shown.get("metadata") or {})}
    before = {**shown, **kind, "metadata": metadata}
    write = Write(
        CREATE,
        info.resource,
        subresource=info.subresource,
        request=write_request(request),
        sent=before,
    )
    after = store.admission.run(write).sent
    if after is None or after is before:
        return sent
    try:
        changed = structs.read(after, type(sent))
    except errors.BadRequest as error:
        raise InternalError.because(error.message) from None
    if (after.get("metadata") or {}).get("name") != metadata.get("name"):
        raise errors.BadRequest(f"name in URL does not match name in {kind['kind']} object")
    return changed
