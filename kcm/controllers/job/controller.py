"""Job: runs pods until enough of them have succeeded, or too many have failed.

Departures: a change of a pod is handled at once, not a second later. The delay of the replacement
of a failed pod is computed from the pods that still exist, so it survives a restart. The deadline
of a Job that is resumed starts again, as upstream's documents say; upstream's code may fail such a
Job at once. A sync in which a pod could not be patched writes no status; the next one does.

Source: pkg/controller/job/job_controller.go, Kubernetes 1.33. Upstream's expectations of pods and
finalizers are not needed here: a sync starts with caches that hold every earlier write (design
0011).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from pydantic import Field

from kcm.api.batch_v1 import JOB_CONTROLLER, Job, end_condition
from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.apimachinery.ownership import controller_of
from kcm.controllers.job.counts import METRICS
from kcm.controllers.job.pods import is_tracked, track, untrack
from kcm.controllers.job.state import observe_job
from kcm.controllers.job.sync import plan_sync
from kcm.helpers.owners import claim, list_controlled, own_and_orphans, selector_of
from kcm.sdk import (
    BY_CONTROLLER,
    ORPHANS,
    Change,
    Controller,
    Options,
    Patch,
    Plan,
    View,
    Watch,
    controller_key,
    owner_keys,
)

# Keys of Jobs have one slash. These keys stand for the pods in a namespace whose Job, named by its
# uid, is gone, or with _NOBODY for those without a controller. No other process removes the
# finalizer of such pods.
_STRAYS = "strays/{namespace}/{uid}"
_NOBODY = "nobody"
_MODES = (None, "NonIndexed", "Indexed")


class JobOptions(Options):
    """The options of the Job controller."""

    concurrent_job_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of job objects that are allowed to sync concurrently. Larger "
        "number = more responsive jobs, but more CPU (and network) load",
    )


class JobController(Controller):
    """Runs the pods of Jobs, and removes the finalizers of pods that lost their Job.

    A key is a Job, or a group of such pods.
    """

    name = "job-controller"
    short_name = "job"
    metrics = METRICS
    group = "workloads"
    options_type = JobOptions
    options: JobOptions

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Job, job_keys), Watch(Pod, pod_keys))

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_job_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        if key.count("/") > 1:
            _, namespace, uid = key.split("/")
            return _let_strays_go(namespace, uid, view)
        job = view.lister(Job).find(key)
        if job is None or _is_anothers(job):
            return Plan()
        if end_condition(job) is not None:
            # No finalizer should be left by now, but a pod that has one would never be deleted.
            pods = list_controlled(job, Pod, view)
            return Plan().then(*(Patch(pod, untrack) for pod in pods if is_tracked(pod)))
        if job.spec.completion_mode not in _MODES:
            message = "Skipped Job sync because completion mode is unknown"
            return Plan().record(job, "UnknownCompletionMode", message, warning=True)
        return _sync(job, view)


def _sync(job: Job, view: View) -> Plan:
    selector = selector_of(job)
    if selector is None:
        return Plan()
    claimed = claim(job, selector, own_and_orphans(job, Pod, view), adapt=track)
    plan = Plan().then(*claimed.writes, essential=True)
    pods = [pod if controller_of(pod) else track(pod) for pod in claimed.objects]
    return plan_sync(observe_job(job, pods, view.now), plan)


def _is_anothers(job: Job) -> bool:
    return job.spec.managed_by not in (None, JOB_CONTROLLER)


# --- which keys a change touches


def job_keys(change: Change, view: View) -> Iterable[str]:
    """Yields the Job's own key, and if it was deleted, the key of the pods that it leaves."""
    yield change.object.key
    if change.new is None:
        yield _STRAYS.format(namespace=change.object.namespace, uid=change.object.uid)


_owner_keys = owner_keys(Job)


def pod_keys(change: Change, view: View) -> Iterable[str]:
    """Yields the keys of a pod's Job, and of its group of strays if it has a finalizer but no
    Job.
    """
    yield from _owner_keys(change, view)
    pod = change.new
    if pod is None or not is_tracked(pod):
        return
    reference = controller_of(pod)
    if reference is None or _is_stray(pod, reference, view):
        uid = _NOBODY if reference is None else reference.uid
        yield _STRAYS.format(namespace=pod.namespace, uid=uid)


def _is_stray(pod: KubeObject, reference: OwnerReference, view: View) -> bool:
    if (reference.kind, reference.api_version) != ("Job", Job.resource.api_version):
        return False
    job = view.lister(Job).find(f"{pod.namespace}/{reference.name}")
    return job is None or job.uid != reference.uid


# --- pods without a Job


def _let_strays_go(namespace: str, uid: str, view: View) -> Plan:
    lister = view.lister(Pod)
    nobodys = uid == _NOBODY
    pods = (
        lister.by_index(ORPHANS, namespace)
        if nobodys
        else lister.by_index(BY_CONTROLLER, controller_key(namespace, uid))
    )
    strays = [pod for pod in pods if is_tracked(pod)]
    return Plan().then(
        *(
            Patch(pod, partial(_untrack_unless_adopted, None if nobodys else uid))
            for pod in strays
            if nobodys or ((ref := controller_of(pod)) and _is_stray(pod, ref, view))
        )
    )


def _untrack_unless_adopted(uid: str | None, obj: Pod) -> Pod:
    """Returns the pod without the finalizer, unless a Job has adopted it meanwhile."""
    reference = controller_of(obj)
    return untrack(obj) if (reference.uid if reference else None) == uid else obj
