"""Defaults of Jobs and CronJobs.

Source: pkg/apis/batch/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.batch_v1 import CronJob, Job, JobSpec, PodFailurePolicy, PodFailurePolicyRule
from kcm.kinds.defaults.defaulting import change_fields, fill_absent, fill_defaults, fill_each
from kcm.kinds.defaults.pods import pod_spec

_BACKOFF_LIMIT = 6
_UNLIMITED = 2**31 - 1


def job(job: Job) -> Job:
    spec = _template_and_policy(job.spec)
    labels = spec.template.metadata.labels
    if labels and not job.metadata.labels:
        job = job.with_metadata(labels=dict(labels))
    only_one = spec.completions is None and spec.parallelism is None
    spec = fill_defaults(
        spec,
        completions=1 if only_one else None,
        parallelism=1,
        backoff_limit=_BACKOFF_LIMIT if spec.backoff_limit_per_index is None else _UNLIMITED,
        completion_mode="NonIndexed",
        suspend=False,
        manual_selector=False,
    )
    replacement = "TerminatingOrFailed" if spec.pod_failure_policy is None else "Failed"
    spec = fill_absent(spec, pod_replacement_policy=replacement)
    return change_fields(job, spec=spec)


def cron_job(cron_job: CronJob) -> CronJob:
    spec = cron_job.spec
    template = spec.job_template
    template = change_fields(template, spec=_template_and_policy(template.spec))
    spec = fill_defaults(
        change_fields(spec, job_template=template),
        concurrency_policy="Allow",
        suspend=False,
        successful_jobs_history_limit=3,
        failed_jobs_history_limit=1,
    )
    return change_fields(cron_job, spec=spec)


def _template_and_policy(spec: JobSpec) -> JobSpec:
    template = change_fields(spec.template, spec=pod_spec(spec.template.spec))
    return change_fields(
        spec, template=template, pod_failure_policy=_policy(spec.pod_failure_policy)
    )


def _policy(policy: PodFailurePolicy | None) -> PodFailurePolicy | None:
    return policy and change_fields(policy, rules=fill_each(policy.rules, _rule))


def _rule(rule: PodFailurePolicyRule) -> PodFailurePolicyRule:
    patterns = fill_each(
        rule.on_pod_conditions, lambda pattern: fill_defaults(pattern, status="True")
    )
    return change_fields(rule, on_pod_conditions=patterns)
