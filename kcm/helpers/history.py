"""The history of pod templates that StatefulSets and DaemonSets keep in ControllerRevisions.

A revision's data is a patch that brings its template back; `kubectl rollout undo` applies it.

Source: pkg/controller/history/controller_history.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kcm.api import codec
from kcm.api.apps_v1 import ControllerRevision
from kcm.api.core_v1 import PodTemplateSpec
from kcm.api.ownership import new_controller_ref
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apimachinery.names import safe_encode
from kcm.reconcile.plan import Create, Patch, Write

HASH = "controller.kubernetes.io/hash"  # label of a revision: of its data
REVISION_HASH = "controller-revision-hash"  # label of a pod: of which revision it is
_LONGEST_PREFIX = 223  # characters, so that a name has room for the hash
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def patch_of(template: PodTemplateSpec) -> dict[str, Any]:
    """A strategic merge patch that replaces an object's template by this one.

    It has the bytes of upstream's getPatch, for kubectl compares those: keys in order, and
    the creation time that Go prints where there is none.
    """
    printed = json.loads(codec.encode(template))
    _print_no_time(printed)
    for volume in printed.get("spec", {}).get("volumes") or ():
        _print_no_time((volume.get("ephemeral") or {}).get("volumeClaimTemplate"))
    patch: dict[str, Any] = json.loads(
        json.dumps({"spec": {"template": {**printed, "$patch": "replace"}}}, sort_keys=True)
    )
    return patch


def _print_no_time(holder: dict[str, Any] | None) -> None:
    if holder is not None:
        holder["metadata"] = {"creationTimestamp": None, **holder.get("metadata", {})}


def _said(value: Any) -> Any:
    """Data without what says nothing: revisions of earlier releases have no nulls."""
    if isinstance(value, dict):
        return {key: _said(part) for key, part in value.items() if part is not None}
    return [_said(part) for part in value] if isinstance(value, list) else value


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """The template that a revision keeps. Raises ValueError for data of another form."""
    spec = (revision.data or {}).get("spec") or {}
    found = {k: v for k, v in (spec.get("template") or {}).items() if k != "$patch"}
    return PodTemplateSpec.model_validate(found)


def in_order(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Oldest first: by number, then by age and name."""
    return sorted(
        revisions,
        key=lambda r: (r.revision, r.metadata.creation_timestamp or _BEGINNING, r.name),
    )


def data_hash(template: PodTemplateSpec, collisions: int) -> str:
    """What a revision's name ends in; another one for each collision."""
    text = codec.encode(template)
    return safe_encode(str(zlib.crc32(text + (b"#%d" % collisions if collisions else b""))))


def new_revision(
    owner: KubeObject, template: PodTemplateSpec, number: int, value: str, label: str
) -> ControllerRevision:
    """A revision of `owner` that keeps `template`; the label of this name holds its hash."""
    return ControllerRevision(
        metadata=ObjectMeta(
            name=f"{owner.name[:_LONGEST_PREFIX]}-{value}",
            namespace=owner.metadata.namespace,
            labels={**(template.metadata.labels or {}), label: value},
            annotations=dict(owner.annotations) or None,
            owner_references=[new_controller_ref(owner)],
        ),
        data=patch_of(template),
        revision=number,
    )


@dataclass
class Recorded:
    """The revision of the present template, and what makes it so."""

    revision: ControllerRevision
    collisions: int
    writes: list[Write] = field(default_factory=list)


def record(
    owner: KubeObject,
    template: PodTemplateSpec,
    revisions: Sequence[ControllerRevision],
    collisions: int,
    is_taken: Callable[[str], bool],
    *,
    label: str = HASH,
) -> Recorded:
    """The newest revision of `owner` that keeps `template`, numbered as the last one.

    `revisions` are in order. A new one avoids the names that are taken. An older one that came
    back gets the next number, as a rollback is an update, too.
    """
    wanted = _said(patch_of(template))
    last = revisions[-1].revision if revisions else 0
    equal = [revision for revision in revisions if _said(revision.data) == wanted]
    if equal and equal[-1].revision == last:
        return Recorded(equal[-1], collisions)
    if equal:
        raised = equal[-1].replace(revision=last + 1)
        return Recorded(raised, collisions, [Patch(equal[-1], _numbered(last + 1))])
    while True:
        value = data_hash(template, collisions)
        found = new_revision(owner, template, last + 1, value, label)
        if not is_taken(found.key):
            return Recorded(found, collisions, [Create(found)])
        collisions += 1


def _numbered(number: int) -> Callable[[KubeObject], KubeObject]:
    def change(obj: KubeObject) -> KubeObject:
        return obj.replace(revision=max(number, getattr(obj, "revision", 0)))

    return change


def beyond_limit(
    revisions: Sequence[ControllerRevision], live: Callable[[ControllerRevision], bool], limit: int
) -> list[ControllerRevision]:
    """Which of the revisions, in order, go: the oldest of those that nobody uses."""
    unused = [revision for revision in revisions if not live(revision)]
    return unused[: max(0, len(unused) - limit)]
