"""Finds the ReplicaSets of a Deployment's revisions, and builds their names and annotations.

Source: pkg/controller/deployment/util/deployment_util.go, Kubernetes 1.33.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from kcm.api import codec
from kcm.api.apps_v1 import Deployment, ReplicaSet
from kcm.api.core_v1 import PodTemplateSpec
from kcm.apimachinery.names import safe_encode

HASH = "pod-template-hash"  # the label that distinguishes the pods of different templates
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"

# Annotations of a Deployment that its ReplicaSets do not get.
_OWN = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
        "deprecated.deployment.rollback.to",
    }
)
_NAME_LENGTH = 253  # the longest name of an object
_MOST_HISTORY = 2000  # characters; older revisions are dropped first
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def template_hash(template: PodTemplateSpec, collisions: int | None) -> str:
    """Returns the value of the hash label for a template, which also depends on the collision
    count.
    """
    text = codec.encode(template)
    if collisions is not None:
        text += b"#%d" % collisions
    return safe_encode(str(zlib.crc32(text)))


def same_template(template: PodTemplateSpec, other: PodTemplateSpec) -> bool:
    """Reports whether two templates are equal, apart from the hash label."""
    return _without_hash(template) == _without_hash(other)


def _without_hash(template: PodTemplateSpec) -> PodTemplateSpec:
    labels = {k: v for k, v in (template.metadata.labels or {}).items() if k != HASH}
    return template.replace(metadata=template.metadata.replace(labels=labels or None))


def oldest_first(rs: ReplicaSet) -> tuple[datetime, str]:
    """Returns a sort key: the creation time, then the name."""
    return rs.metadata.creation_timestamp or _BEGINNING, rs.name


def find_new_set(deployment: Deployment, sets: Iterable[ReplicaSet]) -> ReplicaSet | None:
    """Returns the ReplicaSet with the Deployment's present template, the oldest one if there are
    several.
    """
    alike = (rs for rs in sets if same_template(rs.spec.template, deployment.spec.template))
    return min(alike, key=oldest_first, default=None)


def revision_of(annotations: Mapping[str, str]) -> int:
    """Returns the revision in the annotations, 0 if it is missing or not a number."""
    try:
        return int(annotations.get(REVISION, "0"))
    except ValueError:
        return 0


def read_number(annotations: Mapping[str, str], name: str) -> int | None:
    """Returns the number in an annotation, None if it is missing or not a number."""
    try:
        return int(annotations[name])
    except (KeyError, ValueError):
        return None


def annotations_of_new(
    deployment: Deployment, present: Mapping[str, str], revision: int, *, exists: bool
) -> dict[str, str]:
    """Returns the annotations of the new ReplicaSet, which has the annotations `present` so far.

    They get the Deployment's annotations and its revision. If the ReplicaSet exists, because an
    older template came back, its earlier revision is added to its history.
    """
    copied = {k: v for k, v in deployment.annotations.items() if k not in _OWN}
    annotations = {**present, **copied}
    before = present.get(REVISION)
    if revision_of(present) < revision:
        annotations[REVISION] = str(revision)
        if exists and before is not None:
            annotations[HISTORY] = _append_revision(present.get(HISTORY, ""), before)
    return annotations


def _append_revision(history: str, revision: str) -> str:
    revisions = [*history.split(","), revision] if history else [revision]
    while len(revisions) > 1 and len(",".join(revisions)) > _MOST_HISTORY:
        del revisions[0]
    return ",".join(revisions)


def name_of_set(deployment: str, value: str) -> str:
    """Returns the name of a ReplicaSet: the Deployment's, cut to fit, and the hash `value`."""
    return f"{deployment[: _NAME_LENGTH - len(value) - 1].rstrip('.')}-{value}"
