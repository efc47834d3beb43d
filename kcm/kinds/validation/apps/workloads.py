"""Validation that ReplicaSets, Deployments, DaemonSets and similar kinds share.

Source: pkg/apis/apps/validation/validation.go and pkg/apis/core/validation/validation.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcm.api.core_v1 import PodTemplateSpec
from kcm.apimachinery.field_errors import Faults, forbidden, invalid, not_negative, not_supported


def selector_mismatch(template: PodTemplateSpec) -> Faults:
    """Returns the fault of a template whose labels the selector of its owner does not match."""
    detail = "`selector` does not match template `labels`"
    return [invalid("spec.template.metadata.labels", template.metadata.labels or None, detail)]


def stays_up(template: PodTemplateSpec, owner: str) -> Faults:
    """Checks that the pods of a template are always restarted, and have no deadline."""
    spec, path = template.spec, "spec.template.spec"
    faults: Faults = []
    if spec.restart_policy != "Always":
        given = spec.restart_policy or ""
        faults.append(not_supported(f"{path}.restartPolicy", given, ("Always",)))
    if spec.active_deadline_seconds is not None:
        detail = f"activeDeadlineSeconds in {owner} is not Supported"
        faults.append(forbidden(f"{path}.activeDeadlineSeconds", detail))
    return faults


def counts(numbers: Mapping[str, int | None]) -> Faults:
    """Checks that the numbers of a status are not negative. They are given by field name."""
    return [fault for name, n in numbers.items() for fault in not_negative(f"status.{name}", n)]


def pod_counts(
    numbers: Mapping[str, int | None], *parts: str, ready: str = "readyReplicas"
) -> Faults:
    """Checks the numbers of pods in a status, which are given by field name.

    None of `parts` may be greater than `replicas`, nor availableReplicas greater than
    readyReplicas, which the message calls `ready`.
    """
    faults = counts(numbers)
    for name in parts:
        if (numbers[name] or 0) > (numbers["replicas"] or 0):
            detail = "cannot be greater than status.replicas"
            faults.append(invalid(f"status.{name}", numbers[name], detail))
    if (numbers["availableReplicas"] or 0) > (numbers["readyReplicas"] or 0):
        detail = f"cannot be greater than {ready}"
        faults.append(invalid("status.availableReplicas", numbers["availableReplicas"], detail))
    return faults


def collisions(new: int | None, old: int | None) -> Faults:
    """Checks that collisionCount does not decrease, since names are derived from it."""
    if old is None or (new is not None and new >= old):
        return []
    return [invalid("status.collisionCount", new or 0, "cannot be decremented")]
