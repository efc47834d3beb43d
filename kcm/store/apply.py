"""Apply: creates an object, or merges it into the stored one by a three-way merge (design 0021).

The last applied configuration is in an annotation. `kcm apply` and APPLY events follow the same
rules. A field that is neither in the new nor in the last applied configuration is not changed.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.admission.token_volume import keep_token
from kcm.store.merge import LAST_APPLIED, merge_patch, three_way
from kcm.store.store import Store
from kcm.store.writes.items import WriteStatus

Outcome = Literal["created", "configured", "unchanged"]
_ATTEMPTS = 10  # the most attempts when other writes come in between


def apply(store: Store, obj: KubeObject) -> tuple[Outcome, KubeObject]:
    """Creates `obj`, or merges it into the stored object.

    Returns the outcome, and the object as stored. Raises: Conflict, BadRequest, Invalid,
    Forbidden, RequestTooLarge, StoreUnavailable.
    """
    resource = obj.resource
    if not obj.name:
        raise errors.BadRequest("an object to apply needs a name, generateName will not do")
    for _ in range(_ATTEMPTS):
        try:
            old = store.get(resource, obj.key)
        except errors.NotFound:
            try:
                return "created", store.create(annotate_last_applied(obj))
            except errors.AlreadyExists:
                continue
        item = store.build_update(merge_applied(obj, old), old)
        if item is None:
            return "unchanged", old
        result = store.write([item])[0]
        if result.status not in (WriteStatus.CONFLICT, WriteStatus.NOT_FOUND):
            return "configured", result.get_stored()
    raise errors.Conflict.of(resource.name, obj.name)


def merge_applied(obj: KubeObject, old: KubeObject) -> KubeObject:
    """Returns `old` after the three-way merge with `obj`, with the new last-applied annotation.

    Lists are replaced, but for the token that admission has mounted into a pod.
    """
    wanted = codec.to_dict(annotate_last_applied(obj))
    annotations = old.metadata.annotations or {}
    try:
        original = json.loads(annotations.get(LAST_APPLIED, "{}"))
    except ValueError:
        original = {}
    current = codec.to_dict(old)
    if isinstance(old, Pod):
        keep_token(wanted["spec"], current["spec"])
    patch = three_way(original if isinstance(original, dict) else {}, wanted, current)
    return codec.decode(merge_patch(current, patch), old.resource)


def annotate_last_applied(obj: KubeObject) -> KubeObject:
    """Returns `obj` with itself in the last-applied annotation and without a resourceVersion."""
    text = json.dumps(_configuration(obj), separators=(",", ":"), ensure_ascii=False) + "\n"
    return drop_version(obj).with_metadata(
        annotations={**(obj.metadata.annotations or {}), LAST_APPLIED: text}
    )


def drop_version(obj: KubeObject) -> KubeObject:
    """Returns `obj` without a resourceVersion."""
    return obj.with_metadata(resource_version=None) if obj.metadata.resource_version else obj


def _configuration(obj: KubeObject) -> dict[str, Any]:
    body = codec.to_dict(drop_version(obj))
    body.pop("status", None)
    annotations = body.get("metadata", {}).get("annotations")
    if annotations:
        annotations.pop(LAST_APPLIED, None)
    return body
