"""Validation of Jobs and of changes to them.

Source: pkg/apis/batch/validation/validation.go and pkg/registry/batch/job/strategy.go, Kubernetes
1.33.
"""

from __future__ import annotations

import re

from kcm import errors
from kcm.api.batch_v1 import (
    CONTROLLER_UID,
    JOB_NAME,
    LEGACY_CONTROLLER_UID,
    LEGACY_JOB_NAME,
    Job,
    JobSpec,
)
from kcm.api.core_v1 import Container, PodTemplateSpec
from kcm.api.core_v1.affinity import Affinity
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    IMMUTABLE,
    Faults,
    invalid,
    invalid_all,
    not_negative,
    not_supported,
    require_unchanged,
    required,
    too_long,
)
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import LabelSelector
from kcm.kinds.validation import meta
from kcm.kinds.validation.apps import workloads
from kcm.kinds.validation.batch import job_policies
from kcm.kinds.validation.podspec import pods

_MODES = ("NonIndexed", "Indexed")
_REPLACEMENT_POLICIES = ("Failed", "TerminatingOrFailed")
_RESTART_POLICIES = ("OnFailure", "Never")
_MOST_PARALLEL = 100_000  # pods of an Indexed Job, so that the status stays small
_MOST_FAILED_INDEXES = 100_000
_MANY = 100_000  # completions above which backoffLimitPerIndex has tighter bounds
_MOST_OF_MANY = 10_000
_MANAGED_BY_LENGTH = 63
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", re.ASCII)


def create(job: Job) -> Faults:
    return [
        *meta.metadata(job, namespaced=True, name_rule=names.subdomain_faults),
        *_rules(job, prefixed=True),
    ]


def _rules(job: Job, *, prefixed: bool) -> Faults:
    return [
        *_check_generated(job, prefixed=prefixed),
        *spec(job.spec, "spec"),
        *_selector(job.spec.selector, job.spec.template),
        *_host_names(job),
    ]


# --- the generated selector


def _check_generated(job: Job, *, prefixed: bool) -> Faults:
    """Checks that the labels and the selector are those that the server generates for a Job.

    With `prefixed`, the labels with the prefix batch.kubernetes.io must be there; older Jobs may
    lack them.
    """
    selector = job.spec.selector
    if job.spec.manual_selector or selector is None:
        return []
    expected = {LEGACY_CONTROLLER_UID: job.uid, LEGACY_JOB_NAME: job.name}
    if prefixed:
        expected |= {CONTROLLER_UID: job.uid, JOB_NAME: job.name}
    faults = [] if job.uid else [required("metadata.uid")]
    labels = job.spec.template.metadata.labels or {}
    for key, value in expected.items():
        path, detail = f"spec.template.metadata.labels[{key}]", f"must be '{value}'"
        if key not in labels:
            faults.append(required(path, detail))
        elif labels[key] != value:
            faults.append(invalid(path, labels, detail))
    compiled = _compile(selector)
    if compiled is not None and not compiled.matches(expected):
        faults.append(invalid("spec.selector", selector, "`selector` not auto-generated"))
    return faults


def _compile(selector: LabelSelector | None) -> Selector | None:
    try:
        return Selector.from_label_selector(selector)
    except errors.BadRequest:
        return None


def _selector(selector: LabelSelector | None, template: PodTemplateSpec) -> Faults:
    if selector is None:
        faults = [required("spec.selector")]
    else:
        faults = meta.label_selector(selector, "spec.selector")
    compiled = _compile(selector)
    if compiled is not None and not compiled.matches(template.metadata.labels):
        faults += workloads.selector_mismatch(template)
    return faults


def _host_names(job: Job) -> Faults:
    """Checks that the pods' host names, which consist of an Indexed Job's name and an index, are
    valid.
    """
    completions = job.spec.completions
    if job.spec.completion_mode != "Indexed" or not completions or completions < 0:
        return []
    longest = f"{job.name}-{completions - 1}"
    if not names.label_faults(longest):
        return []
    detail = f"will not able to create pod with invalid DNS label: {longest}"
    return [invalid("metadata.name", job.name, detail)]


# --- the spec, of Jobs and of CronJobs' templates


def spec(job_spec: JobSpec, path: str) -> Faults:
    """Checks the spec of a Job, except its selector."""
    return [
        *_numbers(job_spec, path),
        *_managed_by(job_spec.managed_by, f"{path}.managedBy"),
        *_mode(job_spec, path),
        *job_policies.failure(job_spec, f"{path}.podFailurePolicy"),
        *job_policies.success(job_spec, f"{path}.successPolicy"),
        *_replacement(job_spec, f"{path}.podReplacementPolicy"),
        *pods.template(job_spec.template, f"{path}.template"),
        *_restart_policy(job_spec, f"{path}.template.spec.restartPolicy"),
    ]


def _numbers(job_spec: JobSpec, path: str) -> Faults:
    faults = [
        *not_negative(f"{path}.parallelism", job_spec.parallelism),
        *not_negative(f"{path}.completions", job_spec.completions),
        *not_negative(f"{path}.activeDeadlineSeconds", job_spec.active_deadline_seconds),
        *not_negative(f"{path}.backoffLimit", job_spec.backoff_limit),
        *not_negative(f"{path}.ttlSecondsAfterFinished", job_spec.ttl_seconds_after_finished),
        *not_negative(f"{path}.backoffLimitPerIndex", job_spec.backoff_limit_per_index),
        *not_negative(f"{path}.maxFailedIndexes", job_spec.max_failed_indexes),
    ]
    if job_spec.max_failed_indexes is not None and job_spec.backoff_limit_per_index is None:
        detail = "when maxFailedIndexes is specified"
        faults.append(required(f"{path}.backoffLimitPerIndex", detail))
    return faults


def _managed_by(name: str | None, path: str) -> Faults:
    if name is None:
        return []
    faults = _domain_prefixed(name, path)
    if len(name) > _MANAGED_BY_LENGTH:
        faults.append(too_long(path, _MANAGED_BY_LENGTH))
    return faults


def _domain_prefixed(name: str, path: str) -> Faults:
    if not name:
        return [required(path)]
    host, _, rest = name.partition("/")
    if not host or not rest:
        return [invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    faults = invalid_all(path, host, names.subdomain_faults(host))
    if not _PATH.fullmatch(rest):
        detail = f"Invalid path (regex used for validation is '{_PATH.pattern}')"
        faults.append(invalid(path, rest, detail))
    return faults


def _mode(job_spec: JobSpec, path: str) -> Faults:
    mode = job_spec.completion_mode
    if mode == "Indexed":
        return _indexed(job_spec, path) + _many_indexes(job_spec, path)
    faults: Faults = []
    if mode not in (None, *_MODES):
        return [not_supported(f"{path}.completionMode", mode, _MODES)]
    limits = {
        "backoffLimitPerIndex": job_spec.backoff_limit_per_index,
        "maxFailedIndexes": job_spec.max_failed_indexes,
    }
    for field, value in limits.items():
        if value is not None:
            faults.append(invalid(f"{path}.{field}", value, "requires indexed completion mode"))
    return faults


def _indexed(job_spec: JobSpec, path: str) -> Faults:
    completions, failed = job_spec.completions, job_spec.max_failed_indexes
    faults: Faults = []
    if completions is None:
        faults.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if (job_spec.parallelism or 0) > _MOST_PARALLEL:
        detail = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
        faults.append(invalid(f"{path}.parallelism", job_spec.parallelism, detail))
    if failed is not None and completions is not None and failed > completions:
        detail = "must be less than or equal to completions"
        faults.append(invalid(f"{path}.maxFailedIndexes", failed, detail))
    if (failed or 0) > _MOST_FAILED_INDEXES:
        detail = f"must be less than or equal to {_MOST_FAILED_INDEXES}"
        faults.append(invalid(f"{path}.maxFailedIndexes", failed, detail))
    return faults


def _many_indexes(job_spec: JobSpec, path: str) -> Faults:
    if (job_spec.completions or 0) <= _MANY or job_spec.backoff_limit_per_index is None:
        return []
    bound = (
        f"must be less than or equal to {_MOST_OF_MANY} when completions are above {_MANY} "
        "and used with backoff limit per index"
    )
    failed = job_spec.max_failed_indexes
    faults: Faults = []
    if failed is None:
        detail = f"must be specified when completions is above {_MANY}"
        faults.append(required(f"{path}.maxFailedIndexes", detail))
    if (job_spec.parallelism or 0) > _MOST_OF_MANY:
        faults.append(invalid(f"{path}.parallelism", job_spec.parallelism, bound))
    if (failed or 0) > _MOST_OF_MANY:
        faults.append(invalid(f"{path}.maxFailedIndexes", failed, bound))
    return faults


def _replacement(job_spec: JobSpec, path: str) -> Faults:
    policy = job_spec.pod_replacement_policy
    supported = _REPLACEMENT_POLICIES if job_spec.pod_failure_policy is None else ("Failed",)
    if policy is None or policy in supported:
        return []
    return [not_supported(path, policy, supported)]


def _restart_policy(job_spec: JobSpec, path: str) -> Faults:
    policy = job_spec.template.spec.restart_policy
    if policy in (None, "", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in _RESTART_POLICIES:
        return [not_supported(path, policy, _RESTART_POLICIES)]
    if job_spec.pod_failure_policy is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        return [invalid(path, policy, detail)]
    return []


# --- changes


def update(new: Job, old: Job) -> Faults:
    labels = old.spec.template.metadata.labels or {}
    prefixed = JOB_NAME in labels and CONTROLLER_UID in labels
    return [
        *meta.metadata_update(new, old),
        *_rules(new, prefixed=prefixed),
        *_completions(new.spec, old.spec),
        *_template_update(new, old),
        *_immutable(new.spec, old.spec),
    ]


def _immutable(new: JobSpec, old: JobSpec) -> Faults:
    fields = {
        "selector": (new.selector, old.selector),
        "completionMode": (new.completion_mode, old.completion_mode),
        "podFailurePolicy": (new.pod_failure_policy, old.pod_failure_policy),
        "backoffLimitPerIndex": (new.backoff_limit_per_index, old.backoff_limit_per_index),
        "managedBy": (new.managed_by, old.managed_by),
        "successPolicy": (new.success_policy, old.success_policy),
    }
    # Absent and 0 differ here: 0 is a limit.
    return [
        invalid(f"spec.{name}", value, IMMUTABLE)
        for name, (value, before) in fields.items()
        if value != before
    ]


def _completions(new: JobSpec, old: JobSpec) -> Faults:
    """Checks that completions change only in Indexed Jobs, together with parallelism."""
    path, wanted = "spec.completions", new.completions
    if wanted == old.completions:
        return []
    if new.completion_mode != "Indexed":
        return [invalid(path, wanted, IMMUTABLE)]
    if wanted is None or wanted == new.parallelism:
        return []
    return [invalid(path, wanted, "can only be modified in tandem with spec.parallelism")]


def _template_update(new: Job, old: Job) -> Faults:
    """Checks that the template stays, except what may change while a suspended Job has no pods.

    These are the scheduling fields and the resources of containers.
    """
    template, before = new.spec.template, old.spec.template
    if not _is_idle(old):
        return require_unchanged("spec.template", template, before)
    expected = before.spec.replace(
        node_selector=template.spec.node_selector,
        tolerations=template.spec.tolerations,
        scheduling_gates=template.spec.scheduling_gates,
        affinity=_with_node_affinity(template.spec.affinity, before.spec.affinity),
        containers=_with_resources(before.spec.containers, template.spec.containers),
        init_containers=before.spec.init_containers
        and _with_resources(before.spec.init_containers, template.spec.init_containers or []),
    )
    return require_unchanged("spec.template.spec", template.spec, expected)


def _is_idle(job: Job) -> bool:
    """Reports whether a Job is suspended, and has no pods of the time before."""
    rests = job.status.start_time is None or any(
        condition.type == "Suspended" and condition.status == "True"
        for condition in job.status.conditions or ()
    )
    return bool(job.spec.suspend) and rests and not job.status.active


def _with_resources(old: list[Container], new: list[Container]) -> list[Container]:
    """Returns the old containers with the resources of the new ones of the same name and place."""
    if len(old) != len(new):
        return old
    return [
        before.replace(resources=after.resources) if before.name == after.name else before
        for before, after in zip(old, new, strict=True)
    ]


def _with_node_affinity(wanted: Affinity | None, old: Affinity | None) -> Affinity | None:
    """Returns the old affinity with the node affinity of the wanted one, None if both are empty."""
    chosen = wanted.node_affinity if wanted else None
    kept = (old or Affinity()).replace(node_affinity=chosen)
    return None if wanted is None and kept == Affinity() else kept
