"""batch/v1: Job, CronJob.

Source: staging/src/k8s.io/api/batch/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.api.core_v1.events import ObjectReference
from kcm.api.core_v1.pods import PodTemplateSpec
from kcm.apimachinery.base import Bool, Int32, Int64, MergeKey, MergeSet, Model
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector, ObjectMeta, Time

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
CONTROLLER_UID, JOB_NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
LEGACY_CONTROLLER_UID, LEGACY_JOB_NAME = "controller-uid", "job-name"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
JOB_CONTROLLER = "kubernetes.io/job-controller"


class PodFailurePolicyOnExitCodesRequirement(Model):
    """A condition on the exit codes of a failed pod's containers."""

    container_name: str | None = None
    operator: str = ""
    values: Annotated[list[Int32], MergeSet(patches=False)] = Field(default_factory=list)


class PodFailurePolicyOnPodConditionsPattern(Model):
    """A type and status that a condition of a failed pod must have."""

    type: str = ""
    status: str = ""


class PodFailurePolicyRule(Model):
    """An action for failed pods, and the exit codes or pod conditions that call for it."""

    action: str = ""
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: list[PodFailurePolicyOnPodConditionsPattern] | None = None


class PodFailurePolicy(Model):
    """Rules about how failed pods count for their Job. The first that matches a pod applies."""

    rules: list[PodFailurePolicyRule] = Field(default_factory=list)


class SuccessPolicyRule(Model):
    """The indexes that must have succeeded, or how many must have, for the Job to succeed."""

    succeeded_indexes: str | None = None
    succeeded_count: Int32 | None = None


class SuccessPolicy(Model):
    """Rules by which an Indexed Job succeeds before all of its indexes have. One must hold."""

    rules: list[SuccessPolicyRule] = Field(default_factory=list)


class JobSpec(Model):
    """The pods that a Job runs, how many must succeed, and how failures are handled."""

    parallelism: Int32 | None = None
    completions: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    selector: LabelSelector | None = None
    manual_selector: Bool | None = None
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)
    ttl_seconds_after_finished: Int32 | None = None
    completion_mode: str | None = None
    suspend: Bool | None = None
    pod_replacement_policy: str | None = None
    managed_by: str | None = None


class JobCondition(Model):
    """One aspect of a Job's state."""

    type: str = ""
    status: str = ""
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class UncountedTerminatedPods(Model):
    """The uids of pods that have ended and are not yet in the counts of the Job's status."""

    succeeded: Annotated[list[str] | None, MergeSet(patches=False)] = None
    failed: Annotated[list[str] | None, MergeSet(patches=False)] = None


class JobStatus(Model):
    """The numbers of a Job's pods, and the conditions that say whether and how it has finished."""

    conditions: Annotated[list[JobCondition] | None, MergeKey("type", applies=False)] = None
    start_time: Time | None = None
    completion_time: Time | None = None
    active: Int32 | None = None
    succeeded: Int32 | None = None
    failed: Int32 | None = None
    terminating: Int32 | None = None
    completed_indexes: str | None = None
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    ready: Int32 | None = None


class Job(KubeObject):
    """Runs pods until a given number of them has succeeded."""

    api_version: str = "batch/v1"
    kind: str = "Job"
    spec: JobSpec = Field(default_factory=JobSpec)
    status: JobStatus = Field(default_factory=JobStatus)


class JobTemplateSpec(Model):
    """The metadata and spec of the Jobs that are created from this template."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: JobSpec = Field(default_factory=JobSpec)


class CronJobSpec(Model):
    """The schedule of a CronJob, the template of its Jobs, and how many finished Jobs are kept."""

    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: str | None = None
    suspend: Bool | None = None
    job_template: JobTemplateSpec = Field(default_factory=JobTemplateSpec)
    successful_jobs_history_limit: Int32 | None = None
    failed_jobs_history_limit: Int32 | None = None


class CronJobStatus(Model):
    """The running Jobs of a CronJob, and the times of its last start and last success."""

    active: list[ObjectReference] | None = None
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


class CronJob(KubeObject):
    """Creates Jobs on a schedule."""

    api_version: str = "batch/v1"
    kind: str = "CronJob"
    spec: CronJobSpec = Field(default_factory=CronJobSpec)
    status: CronJobStatus = Field(default_factory=CronJobStatus)


FINISHED = ("Complete", "Failed")


def condition_of(job: Job, type_: str) -> JobCondition | None:
    """Returns the Job's condition of this type if its status is True, otherwise None."""
    true_conditions = (
        c for c in job.status.conditions or () if c.type == type_ and c.status == "True"
    )
    return next(true_conditions, None)


def end_condition(job: Job) -> JobCondition | None:
    """Returns the true condition Complete or Failed, or None while the Job has not finished."""
    final_conditions = (
        c for c in job.status.conditions or () if c.type in FINISHED and c.status == "True"
    )
    return next(final_conditions, None)
