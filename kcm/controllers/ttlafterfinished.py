"""TTLAfterFinished: deletes Jobs ttlSecondsAfterFinished seconds after they have ended.

Source: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kcm import errors
from kcm.api.batch_v1 import Job, end_condition
from kcm.apimachinery.meta_v1 import shift_time
from kcm.sdk import (
    Controller,
    Delete,
    DeleteOptions,
    Histogram,
    Options,
    Plan,
    View,
    Watch,
    exponential_buckets,
    own_key,
)

DURATION = Histogram(
    "ttl_after_finished_controller_job_deletion_duration_seconds",
    "The time it took to delete the job since it became eligible for deletion",
    exponential_buckets(0.1, 2, 14),
)


class TTLAfterFinishedOptions(Options):
    """The options of the ttl-after-finished controller."""

    concurrent_ttl_after_finished_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of ttl-after-finished-controller workers that are allowed to "
        "sync concurrently",
    )


class TTLAfterFinishedController(Controller):
    """Deletes finished Jobs when their TTL is over, until when their keys are delayed. A key is a
    Job.
    """

    name = "ttl-after-finished-controller"
    short_name = "ttlafterfinished"
    metrics = (DURATION,)
    group = "workloads"
    options_type = TTLAfterFinishedOptions
    options: TTLAfterFinishedOptions

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Job, own_key),)

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_ttl_after_finished_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        job = view.lister(Job).find(key)
        if job is None or job.deleting:
            return Plan()
        ttl, end = job.spec.ttl_seconds_after_finished, end_condition(job)
        if ttl is None or end is None:
            return Plan()
        if end.last_transition_time is None:
            message = f"unable to find the time when the Job {key} finished"
            return Plan(error=errors.ConfigurationError(message))
        left = (shift_time(end.last_transition_time, ttl) - view.now).total_seconds()
        if left > 0:
            return Plan(requeue_after=left)
        # Deletes only this version: its TTL may have been prolonged meanwhile.
        version = job.metadata.resource_version or ""
        options = DeleteOptions(None, "Foreground", job.uid, version)
        plan = Plan().then(Delete(job, options))
        plan.counts_after = lambda outcome: DURATION.observe(-left) if outcome.done else {}
        return plan
