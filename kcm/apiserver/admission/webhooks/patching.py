"""Applies patches of mutating webhooks to objects, Scales, and requests such as Bindings."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pydantic_core import to_json

from kcm import errors
from kcm.api import codec, scaling
from kcm.api.admissionregistration_v1 import CONNECT
from kcm.api.scheme import Resource
from kcm.apiextensions import conversion
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.admission.attributes import SCALE, WriteAttributes
from kcm.apiserver.admission.webhooks.errors import CallingWebhookFailed
from kcm.apiserver.http.bodies import client_warnings, fieldvalidation, patches, structs
from kcm.apiserver.http.bodies.patches import ObjectPatch
from kcm.apiserver.http_errors import InternalError
from kcm.apiserver.scales import scale_of
from kcm.kinds import defaults

_TYPE = ("api_version", "kind")
_METADATA = frozenset({"metadata"})


def read_operations(webhook: str, patch: bytes) -> list[Any]:
    """Returns the operations of a JSON patch. Raises CallingWebhookFailed."""
    try:
        operations = json.loads(patch)
        if not isinstance(operations, list):
            raise errors.BadRequest("it is not a list")
    except (ValueError, RecursionError, errors.BadRequest) as error:
        why = f"received undecodable patch in webhook response: {error}"
        raise CallingWebhookFailed(webhook, why) from None
    return operations


def read_patch(patch: bytes, matched: Resource) -> ObjectPatch:
    """Returns a JSON patch. Raises InternalError if it is none."""
    with _internal_errors():
        return patches.parse(patches.JSON_PATCH, patch, matched)


def change_write(
    write: WriteAttributes, change: ObjectPatch, matched: Resource, *, strict: bool = False
) -> WriteAttributes:
    """Returns the write with its object changed, the same write if it does not change.

    The patch is for the object in the version of `matched`, or for what the request has in its
    place: a Scale, or an object that is not stored. Raises InternalError if the patch cannot be
    applied, or its result is no object of the kind, or, if it is `strict`, has unknown fields.
    """
    with _internal_errors():
        if write.sent is not None and write.operation != CONNECT:
            sent = change(copy.deepcopy(dict(write.sent)))
            return write if sent == write.sent else replace(write, sent=sent)
        assert write.new is not None  # only then there is something to change
        if write.subresource == SCALE:
            new = _change_scale(write.new, change, write.resource)
        else:
            new = _change_object(write.new, change, matched, write.resource, strict=strict)
    return write if new == write.new else replace(write, new=new)


def _change_object(
    obj: KubeObject, change: ObjectPatch, matched: Resource, resource: Resource, *, strict: bool
) -> KubeObject:
    """Returns the object after a patch, in its own version, with defaults for what was added."""
    if matched is not resource:
        obj = conversion.to_version(obj, resource, matched)
    parts = patches.touched_parts(change, matched)
    target = codec.to_dict(obj, None if parts is None else {*parts, *_TYPE})
    changed = change(target)
    if parts is None or not parts.isdisjoint(_TYPE):
        text = to_json(changed, inf_nan_mode="constants")
        patched = codec.decode(text, matched, keep_unknown=True)
    else:
        decoded = codec.decode_parts(changed, parts, matched, keep_unknown=True)
        patched = obj.replace(**decoded)
    kept = client_warnings.prune(patched)
    if strict and (unknown := fieldvalidation.unknown_in(kept, patched)):
        raise errors.BadRequest(fieldvalidation.join(unknown))
    patched = kept
    if parts != _METADATA:  # which has no defaults
        patched = defaults.apply(patched)
    return patched if matched is resource else conversion.to_version(patched, matched, resource)


def _change_scale(obj: KubeObject, change: ObjectPatch, resource: Resource) -> KubeObject:
    """Returns the object after a patch of its Scale, of which the replicas alone count."""
    shown = scale_of(obj, resource)
    before = shown["spec"]["replicas"]
    wanted = structs.read(change(shown), structs.Scale).spec.replicas
    return obj if wanted == before else scaling.with_replicas(obj, wanted, resource)


@contextmanager
def _internal_errors() -> Iterator[None]:
    """Raises InternalError for what is wrong with a patch or its result."""
    try:
        yield
    except errors.ApiError as error:
        raise InternalError.because(error.message) from None
    except (ValueError, RecursionError) as error:
        raise InternalError.because(str(error)) from None
