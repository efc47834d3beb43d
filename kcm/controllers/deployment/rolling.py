"""The two strategies of replacing pods of old templates: RollingUpdate and Recreate.

Source: pkg/controller/deployment/{rolling,recreate}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.core_v1 import Pod
from kcm.controllers.deployment.bounds import (
    is_rolling,
    max_surge,
    max_unavailable,
    wanted_replicas,
)
from kcm.controllers.deployment.revisions import oldest_first
from kcm.controllers.deployment.rollout import Draft, Rollout, available_in, pods_in
from kcm.helpers.pods import is_terminal


def roll(rollout: Rollout) -> None:
    """Takes one step of RollingUpdate.

    It scales the new ReplicaSet up as far as maxSurge allows. If that changes nothing, it scales
    the old ones down as far as maxUnavailable allows.
    """
    assert rollout.new is not None
    if not _scale_new(rollout, rollout.new):
        _scale_old(rollout, rollout.new)


def size_of_new(rollout: Rollout, new: Draft) -> int:
    """Returns the number of replicas that the new ReplicaSet may have now."""
    replicas = wanted_replicas(rollout.deployment)
    if not is_rolling(rollout.deployment):
        return replicas
    room = replicas + max_surge(rollout.deployment) - pods_in(rollout.all)
    if room <= 0:
        return new.replicas
    return new.replicas + min(room, replicas - new.replicas)


def _scale_new(rollout: Rollout, new: Draft) -> bool:
    replicas = wanted_replicas(rollout.deployment)
    if new.replicas == replicas:
        return False
    size = replicas if new.replicas > replicas else size_of_new(rollout, new)
    return rollout.scale(new, size)


def _scale_old(rollout: Rollout, new: Draft) -> None:
    old = rollout.active_old
    # New pods that are not available yet count as unavailable, so that a bad template stops the
    # rollout instead of taking the old pods away.
    least = wanted_replicas(rollout.deployment) - max_unavailable(rollout.deployment)
    spare = pods_in(rollout.all) - least - (new.replicas - new.available)
    if not old or spare <= 0:
        return
    old.sort(key=lambda draft: oldest_first(draft.rs))
    _drop_unhealthy(rollout, old, spare)
    spare = available_in(rollout.all) - least
    for draft in old:
        if spare <= 0:
            return
        down = min(draft.replicas, spare)
        spare -= down
        if down:
            rollout.scale(draft, draft.replicas - down)


def _drop_unhealthy(rollout: Rollout, old: Iterable[Draft], most: int) -> None:
    """Scales old ReplicaSets down by their unavailable pods, by at most `most` pods in all.

    See kubernetes/kubernetes issue 16737.
    """
    for draft in old:
        down = min(most, draft.replicas - draft.available)
        if down > 0:
            most -= down
            rollout.scale(draft, draft.replicas - down)


def recreate(rollout: Rollout, running: Iterable[Pod]) -> bool:
    """Takes one step of Recreate: scales the old ReplicaSets to 0.

    Returns True when all old pods are gone, so that new ones may be created. `running` are the pods
    of all ReplicaSets; those of the new one are ignored.
    """
    active = rollout.active_old
    for draft in active:
        rollout.scale(draft, 0)
    if active or any(draft.rs.status.replicas for draft in rollout.old):
        return False
    new = rollout.new.rs.uid if rollout.new is not None else ""
    return not any(_runs(pod) and not _belongs(pod, new) for pod in running)


def _runs(pod: Pod) -> bool:
    return not is_terminal(pod)


def _belongs(pod: Pod, uid: str) -> bool:
    owners = pod.metadata.owner_references or ()
    return bool(uid) and any(owner.uid == uid for owner in owners)
