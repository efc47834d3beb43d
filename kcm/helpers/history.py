"""The history of pod templates, which StatefulSets and DaemonSets keep in ControllerRevisions.

The data of a revision is a patch that restores its template; `kubectl rollout undo` applies it.

Source: pkg/controller/history/controller_history.go, Kubernetes 1.36.
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
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apimachinery.names import safe_encode
from kcm.apimachinery.ownership import new_controller_ref
from kcm.reconcile.plan import Create, Patch, Write

HASH = "controller.kubernetes.io/hash"  # the label of a revision with the hash of its data
REVISION_HASH = "controller-revision-hash"  # the label of a pod with its revision
_LONGEST_PREFIX = 223  # characters of the owner's name in a revision's, which also has a hash
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def patch_of(template: PodTemplateSpec) -> dict[str, Any]:
    """Returns a strategic merge patch that replaces an object's template by this one.

    As JSON it equals the result of upstream's getPatch, since kubectl compares them: keys are
    sorted, and metadata is there even if it is empty.
    """
    printed = {"metadata": {}, **json.loads(codec.encode(template))}
    for volume in printed.get("spec", {}).get("volumes") or ():
        if claim := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"):
            claim.setdefault("metadata", {})
    patch: dict[str, Any] = json.loads(
        json.dumps({"spec": {"template": {**printed, "$patch": "replace"}}}, sort_keys=True)
    )
    return patch


def _without_empty(value: Any) -> Any:
    """Returns data without nulls. Revisions of Kubernetes up to 1.33 have null creation times."""
    if isinstance(value, dict):
        return {key: _without_empty(part) for key, part in value.items() if part is not None}
    return [_without_empty(part) for part in value] if isinstance(value, list) else value


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """Returns the pod template in a revision's data. Raises ValueError if it is not valid."""
    spec = (revision.data or {}).get("spec") or {}
    fields = {k: v for k, v in (spec.get("template") or {}).items() if k != "$patch"}
    return PodTemplateSpec.model_validate(fields)


def sort_revisions(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Sorts revisions from the oldest to the newest: by number, then by age and name."""
    return sorted(
        revisions,
        key=lambda r: (r.revision, r.metadata.creation_timestamp or _BEGINNING, r.name),
    )


def data_hash(template: PodTemplateSpec, collisions: int) -> str:
    """Returns the hash with which a revision's name ends. It differs for each collision count."""
    text = codec.encode(template)
    return safe_encode(str(zlib.crc32(text + (b"#%d" % collisions if collisions else b""))))


def new_revision(
    owner: KubeObject, template: PodTemplateSpec, number: int, value: str, label: str
) -> ControllerRevision:
    """Returns a revision of `owner` with the given template, number and hash (`value`).

    `label` is the name of the label that has the hash.
    """
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
    """The revision of the current template, the collision count, and the writes that store it."""

    revision: ControllerRevision
    collisions: int
    writes: list[Write] = field(default_factory=list)


def record_revision(
    owner: KubeObject,
    template: PodTemplateSpec,
    revisions: Sequence[ControllerRevision],
    collisions: int,
    is_taken: Callable[[str], bool],
    *,
    label: str = HASH,
) -> Recorded:
    """Returns the revision of the current template, and the writes that make it the newest.

    `revisions` are those of `owner`, sorted. An older revision that has this template gets the next
    number, since a rollback is an update, too. Otherwise a new one is created, under a name for
    which `is_taken` returns False.
    """
    wanted = _without_empty(patch_of(template))
    last = revisions[-1].revision if revisions else 0
    equal = [revision for revision in revisions if _without_empty(revision.data) == wanted]
    if equal and equal[-1].revision == last:
        return Recorded(equal[-1], collisions)
    if equal:
        raised = equal[-1].replace(revision=last + 1)
        return Recorded(raised, collisions, [Patch(equal[-1], _set_number(last + 1))])
    while True:
        value = data_hash(template, collisions)
        recorded = new_revision(owner, template, last + 1, value, label)
        if not is_taken(recorded.key):
            return Recorded(recorded, collisions, [Create(recorded)])
        collisions += 1


def _set_number(number: int) -> Callable[[KubeObject], KubeObject]:
    def change(obj: KubeObject) -> KubeObject:
        return obj.replace(revision=max(number, getattr(obj, "revision", 0)))

    return change


def revisions_beyond_limit(
    revisions: Sequence[ControllerRevision], live: Callable[[ControllerRevision], bool], limit: int
) -> list[ControllerRevision]:
    """Returns the oldest of the sorted revisions that are not live, so that `limit` of these are
    left.
    """
    unused = [revision for revision in revisions if not live(revision)]
    return unused[: max(0, len(unused) - limit)]
