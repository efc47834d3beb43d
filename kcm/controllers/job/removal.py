"""Chooses the active pods of a Job to delete when there are too many.

Source: activePodsForRemoval in pkg/controller/job/job_controller.go,
pkg/controller/job/indexed_job_utils.go, ActivePods in pkg/controller/controller_utils.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from kcm.api.batch_v1 import Job
from kcm.api.core_v1 import Pod
from kcm.controllers.job.pods import is_indexed, valid_index
from kcm.helpers.pods import is_ready, most_restarts, ready_since

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def choose_pods_to_remove(job: Job, active: Sequence[Pod], at_least: int) -> list[Pod]:
    """Returns the pods to delete: at least `at_least` if there are as many.

    Pods without a valid index, or with that of another pod, come first and are always returned.
    Then come those with the least progress.
    """
    to_delete: list[Pod] = []
    left = list(active)
    if is_indexed(job):
        to_delete, left = _superfluous(job, active)
    more = at_least - len(to_delete)
    if more > 0:
        to_delete += sorted(left, key=_worth)[:more]
    return to_delete


def _superfluous(job: Job, active: Sequence[Pod]) -> tuple[list[Pod], list[Pod]]:
    by_index: dict[int | None, list[Pod]] = defaultdict(list)
    for pod in active:
        by_index[valid_index(pod, job)].append(pod)
    to_delete = by_index.pop(None, [])
    left = []
    for same in by_index.values():
        *others, best = sorted(same, key=_worth)
        to_delete += others
        left.append(best)
    return to_delete, left


def _worth(pod: Pod) -> tuple[object, ...]:
    """Returns a sort key by the progress of a pod, then by its age; pods to delete come first."""
    since = ready_since(pod)
    created = pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase or "", 0),
        is_ready(pod),
        -since.timestamp() if since is not None else 0.0,
        *(-restarts for restarts in most_restarts(pod)),
        -created.timestamp() if created is not None else 0.0,
        pod.name,
    )
