"""Scales a Deployment whose rollout is in progress or paused: every ReplicaSet gets its share.

Source: pkg/controller/deployment/sync.go (scale) and util/deployment_util.go
(GetReplicaSetProportion), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.controllers.deployment.bounds import is_rolling, max_surge, wanted_replicas
from kcm.controllers.deployment.revisions import DESIRED, MAXIMUM, oldest_first, read_number
from kcm.controllers.deployment.rollout import Draft, Rollout, pods_in


def scale(rollout: Rollout) -> None:
    """Scales the ReplicaSets to the Deployment's wanted number of pods."""
    replicas = wanted_replicas(rollout.deployment)
    only = _only_active(rollout)
    if only is not None:
        if only.replicas != replicas:
            rollout.scale(only, replicas)
    elif rollout.new is not None and _is_saturated(rollout, rollout.new):
        for draft in rollout.active_old:
            rollout.scale(draft, 0)
    elif is_rolling(rollout.deployment):
        _share_out(rollout)


def _only_active(rollout: Rollout) -> Draft | None:
    """Returns the only ReplicaSet with replicas, or None if several have any.

    If none has, returns the new one, else the newest old one.
    """
    active = [draft for draft in rollout.all if draft.replicas > 0]
    if active:
        return active[0] if len(active) == 1 else None
    if rollout.new is not None:
        return rollout.new
    return max(rollout.old, key=lambda draft: oldest_first(draft.rs), default=None)


def _is_saturated(rollout: Rollout, new: Draft) -> bool:
    replicas = wanted_replicas(rollout.deployment)
    desired = read_number(new.rs.annotations, DESIRED)
    return desired == replicas and new.replicas == replicas and new.available == replicas


def _share_out(rollout: Rollout) -> None:
    """Scales each ReplicaSet in proportion to its size. The largest gets the remainder of the
    rounding.
    """
    active = [draft for draft in rollout.all if draft.replicas > 0]
    replicas = wanted_replicas(rollout.deployment)
    allowed = replicas + max_surge(rollout.deployment) if replicas > 0 else 0
    change = allowed - pods_in(active)
    ordered = _by_size(active, newer_first=change >= 0)
    sizes = [draft.replicas for draft in ordered]
    done = 0
    for index, draft in enumerate(ordered):
        share = _share(rollout, draft, change, done)
        sizes[index] += share
        done += share
    if change and sizes:
        sizes[0] = max(0, sizes[0] + change - done)
    for draft, size in zip(ordered, sizes, strict=True):
        rollout.scale(draft, size)


def _by_size(drafts: Sequence[Draft], *, newer_first: bool) -> list[Draft]:
    """Returns the drafts by size, the largest first, and those of equal size by age."""
    by_age = sorted(drafts, key=lambda draft: oldest_first(draft.rs), reverse=newer_first)
    return sorted(by_age, key=lambda draft: -draft.replicas)


def _share(rollout: Rollout, draft: Draft, change: int, done: int) -> int:
    left = change - done
    if not draft.replicas or not left or not change:
        return 0
    fraction = _fraction(rollout, draft)
    return min(fraction, left) if change > 0 else max(fraction, left)


def _fraction(rollout: Rollout, draft: Draft) -> int:
    """Returns by how many replicas the ReplicaSet's size changes when the Deployment is scaled."""
    replicas = wanted_replicas(rollout.deployment)
    if replicas == 0:
        return -draft.replicas
    most = replicas + max_surge(rollout.deployment)
    before = read_number(draft.rs.annotations, MAXIMUM) or rollout.deployment.status.replicas
    if not before:
        return 0
    # Rounds half away from zero, as upstream does; sizes are never negative.
    return (2 * draft.replicas * most + before) // (2 * before) - draft.replicas
