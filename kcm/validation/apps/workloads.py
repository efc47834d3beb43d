"""What the rules of ReplicaSets, Deployments, DaemonSets and their like share.

Source: pkg/apis/apps/validation/validation.go and pkg/apis/core/validation/validation.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcm.api.core_v1 import PodTemplateSpec
from kcm.apimachinery.field_errors import Faults, forbidden, invalid, not_negative, not_supported


def unmatched(template: PodTemplateSpec) -> Faults:
    """The fault of a template whose labels its owner's selector does not match."""
    detail = "`selector` does not match template `labels`"
    return [invalid("spec.template.metadata.labels", template.metadata.labels or {}, detail)]


def stays_up(template: PodTemplateSpec, owner: str) -> Faults:
    """Pods that are kept running start again, whatever ended them."""
    spec, path = template.spec, "spec.template.spec"
    faults: Faults = []
    if spec.restart_policy != "Always":
        given = spec.restart_policy or ""
        faults.append(not_supported(f"{path}.restartPolicy", given, ("Always",)))
    if spec.active_deadline_seconds is not None:
        detail = f"activeDeadlineSeconds in {owner} is not Supported"
        faults.append(forbidden(f"{path}.activeDeadlineSeconds", detail))
    return faults


def counts(found: Mapping[str, int | None]) -> Faults:
    """Numbers of a status, by the names of their fields."""
    return [fault for name, n in found.items() for fault in not_negative(f"status.{name}", n)]


def pod_counts(
    found: Mapping[str, int | None], *parts: str, ready: str = "readyReplicas"
) -> Faults:
    """Numbers of a status, of which `parts` are no more than `replicas`, nor those available
    more than those ready; `ready` is upstream's word for these."""
    faults = counts(found)
    for name in parts:
        if (found[name] or 0) > (found["replicas"] or 0):
            detail = "cannot be greater than status.replicas"
            faults.append(invalid(f"status.{name}", found[name], detail))
    if (found["availableReplicas"] or 0) > (found["readyReplicas"] or 0):
        detail = f"cannot be greater than {ready}"
        faults.append(invalid("status.availableReplicas", found["availableReplicas"], detail))
    return faults


def collisions(new: int | None, old: int | None) -> Faults:
    """A count of collisions only grows: names are made of it."""
    if old is None or (new is not None and new >= old):
        return []
    return [invalid("status.collisionCount", new or 0, "cannot be decremented")]
