"""Applies patches of mutating webhooks to objects, Scales, and requests such as Bindings."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic_core import to_json

from kcm import errors
from kcm.api import codec, scaling
from kcm.api.scheme import Resource
from kcm.apiextensions import conversion
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.admission.webhooks.errors import CallingWebhookFailed
from kcm.apiserver.bodies import client_warnings, patches, structs
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


def apply_patch(obj: KubeObject, patch: bytes, matched: Resource, resource: Resource) -> KubeObject:
    """Returns the object after a patch, with defaults for what it added.

    The patch is for the object in the version of `matched`; the object is in that of `resource`,
    and stays so. Raises InternalError if the patch cannot be applied or its result is no object of
    the kind.
    """
    with _internal_errors():
        if matched is not resource:
            obj = conversion.to_version(obj, resource, matched)
        change = patches.parse(patches.JSON_PATCH, patch, matched)
        parts = patches.touched_parts(change, matched)
        target = codec.to_dict(obj, None if parts is None else {*parts, *_TYPE})
        changed = change(target)
        if parts is None or not parts.isdisjoint(_TYPE):
            patched = codec.decode(to_json(changed, inf_nan_mode="constants"), matched)
        else:
            patched = obj.replace(**codec.decode_parts(changed, parts, matched))
        patched = client_warnings.prune(patched)
        if parts != _METADATA:  # which has no defaults
            patched = defaults.apply(patched)
        return patched if matched is resource else conversion.to_version(patched, matched, resource)


def patch_scale(obj: KubeObject, patch: bytes, resource: Resource) -> KubeObject:
    """Returns the object after a patch of its Scale, of which the replicas alone count.

    Raises InternalError if the patch cannot be applied or its result is no Scale.
    """
    with _internal_errors():
        shown = scale_of(obj, resource)
        before = shown["spec"]["replicas"]
        patched = patches.parse(patches.JSON_PATCH, patch, resource)(shown)
        wanted = structs.read(patched, structs.Scale).spec.replicas
        return obj if wanted == before else scaling.with_replicas(obj, wanted, resource)


def patch_sent(sent: Mapping[str, Any], patch: bytes, resource: Resource) -> Mapping[str, Any]:
    """Returns an object that is not stored, such as a Binding, after a patch.

    Raises InternalError if the patch cannot be applied.
    """
    with _internal_errors():
        return patches.parse(patches.JSON_PATCH, patch, resource)(copy.deepcopy(dict(sent)))


@contextmanager
def _internal_errors() -> Iterator[None]:
    """Raises InternalError for what is wrong with a patch or its result."""
    try:
        yield
    except errors.ApiError as error:
        raise InternalError.because(error.message) from None
    except (ValueError, RecursionError) as error:
        raise InternalError.because(str(error)) from None
