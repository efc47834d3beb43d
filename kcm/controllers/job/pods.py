"""Evaluates the pods of a Job, and builds new ones.

Source: pkg/controller/job/{job_controller,indexed_job_utils,backoff_utils}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeVar

from kcm.api.batch_v1 import (
    COMPLETION_INDEX,
    INDEX_FAILURES,
    INDEX_IGNORED_FAILURES,
    TRACKING_FINALIZER,
    Job,
)
from kcm.api.core_v1 import Container, ContainerStatus, EnvVar, Pod
from kcm.api.core_v1.environment import EnvVarSource, ObjectFieldSelector
from kcm.apimachinery.meta_v1 import KubeObject, shift_time
from kcm.helpers.pods import condition_of, is_sidecar, pod_from_template

_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
_PREFIX_LENGTH = 58  # characters of generated names
_INT32 = range(2**31)

P = TypeVar("P", bound=KubeObject)


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def has_limit_per_index(job: Job) -> bool:
    return is_indexed(job) and job.spec.backoff_limit_per_index is not None


def replaces_only_ended(job: Job) -> bool:
    """Reports whether a terminating pod is replaced, and counts as failed, only after it has
    ended.
    """
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def is_tracked(pod: KubeObject) -> bool:
    """Reports whether the pod has the finalizer that keeps it until it is counted."""
    return TRACKING_FINALIZER in (pod.metadata.finalizers or ())


def track(pod: P) -> P:
    """Returns the pod with the tracking finalizer."""
    if is_tracked(pod):
        return pod
    return pod.with_metadata(finalizers=[*(pod.metadata.finalizers or ()), TRACKING_FINALIZER])


def untrack(pod: P) -> P:
    """Returns the pod without the tracking finalizer."""
    if not is_tracked(pod):
        return pod
    kept = [name for name in pod.metadata.finalizers or () if name != TRACKING_FINALIZER]
    return pod.with_metadata(finalizers=kept or None)


def is_failed(pod: Pod, job: Job) -> bool:
    """Reports whether the pod counts as failed.

    A pod that is being deleted may count before its phase is Failed, since a node that is gone
    never reports it.
    """
    if pod.status.phase == "Failed":
        return True
    if not pod.deleting:
        return False
    if replaces_only_ended(job):
        return pod.status.phase == "Pending"
    return pod.status.phase != "Succeeded"


def has_succeeded(pod: Pod) -> bool:
    return pod.status.phase == "Succeeded"


# --- indexes


def index_of(pod: Pod) -> int | None:
    """Returns the pod's completion index, None without a valid annotation."""
    text = pod.annotations.get(COMPLETION_INDEX, "")
    return int(text) if text.isascii() and text.isdecimal() else None


def valid_index(pod: Pod, job: Job) -> int | None:
    """Returns the pod's index if it is below the Job's completions, else None."""
    index = index_of(pod)
    return index if index is not None and index < (job.spec.completions or 0) else None


def indexes_of(pods: Iterable[Pod]) -> set[int]:
    return {index for pod in pods if (index := index_of(pod)) is not None}


def index_failures(pod: Pod) -> int:
    """Returns how many pods of its index had failed before this one, except ignored failures."""
    return _count(pod, INDEX_FAILURES)


def all_index_failures(pod: Pod) -> int:
    """Returns how many pods of its index had failed before this one, including ignored failures."""
    return _count(pod, INDEX_FAILURES) + _count(pod, INDEX_IGNORED_FAILURES)


def count_ignored_index_failures(pod: Pod) -> int:
    return _count(pod, INDEX_IGNORED_FAILURES)


def _count(pod: Pod, annotation: str) -> int:
    text = pod.annotations.get(annotation, "")
    number = int(text) if text.isascii() and text.isdecimal() else 0
    return number if number in _INT32 else 0


# --- when a pod ended


def finished_at(pod: Pod) -> datetime:
    """Returns the time when the pod ended, as far as it is known.

    It is the end of its last container, else the time when it became unready or was deleted, else
    its creation.
    """
    ended = _containers_finished_at(pod)
    if ended is not None:
        return ended
    ready = condition_of(pod.status, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    meta = pod.metadata
    if meta.deletion_timestamp is not None:
        return shift_time(meta.deletion_timestamp, -(meta.deletion_grace_period_seconds or 0))
    assert meta.creation_timestamp is not None
    return meta.creation_timestamp


def _containers_finished_at(pod: Pod) -> datetime | None:
    ends = [_latest_finish(status) for status in _long_running(pod)]
    finished = [end for end in ends if end is not None]
    return max(finished) if finished and len(finished) == len(ends) else None


def _long_running(pod: Pod) -> Iterator[ContainerStatus]:
    """Yields the statuses of the containers and the sidecars, but not of other init containers."""
    yield from pod.status.container_statuses or ()
    sidecars = {c.name for c in pod.spec.init_containers or () if is_sidecar(c)}
    for status in pod.status.init_container_statuses or ():
        if status.name in sidecars:
            yield status


def _latest_finish(status: ContainerStatus) -> datetime | None:
    ended = status.state.terminated if status.state is not None else None
    return None if ended is None else ended.finished_at


# --- building pods


def plain_pod(job: Job) -> Pod:
    """Returns a new pod of a Job that is not indexed."""
    return track(pod_from_template(job.spec.template, job))


def indexed_pod(job: Job, index: int, counts: tuple[int, int] | None) -> Pod:
    """Returns a new pod for an index.

    `counts` are the counted and the ignored failures of the index so far, None if the Job has no
    limit per index.
    """
    pod = track(pod_from_template(job.spec.template, job))
    meta = pod.metadata
    annotations = {**(meta.annotations or {}), COMPLETION_INDEX: str(index)}
    if counts is not None:
        annotations[INDEX_FAILURES] = str(counts[0])
        if counts[1]:
            annotations[INDEX_IGNORED_FAILURES] = str(counts[1])
    suffix = f"-{index}-"
    named = pod.with_metadata(
        generate_name=f"{job.name[: _PREFIX_LENGTH - len(suffix)]}{suffix}",
        annotations=annotations,
        labels={**(meta.labels or {}), COMPLETION_INDEX: str(index)},
    )
    spec = pod.spec.replace(
        hostname=f"{job.name}-{index}",
        containers=[_with_index(container) for container in pod.spec.containers],
        init_containers=[_with_index(c) for c in pod.spec.init_containers or ()] or None,
    )
    return named.with_spec(spec)


def _with_index(container: Container) -> Container:
    env = container.env or []
    if any(variable.name == _INDEX_VARIABLE for variable in env):
        return container
    field = ObjectFieldSelector(field_path=f"metadata.labels['{COMPLETION_INDEX}']")
    source = EnvVarSource(field_ref=field)
    return container.replace(env=[*env, EnvVar(name=_INDEX_VARIABLE, value_from=source)])
