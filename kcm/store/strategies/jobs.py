"""The strategy of Jobs, which get labels and a selector of their own.

Source: pkg/registry/batch/job/strategy.go, Kubernetes 1.36.
"""

from __future__ import annotations

from kcm.api.batch_v1 import (
    CONTROLLER_UID,
    JOB_NAME,
    LEGACY_CONTROLLER_UID,
    LEGACY_JOB_NAME,
    Job,
    JobSpec,
)
from kcm.apimachinery.meta_v1 import LabelSelector
from kcm.store.strategies.base import Strategy


class JobStrategy(Strategy[Job]):
    """A Job gets labels and a selector with its uid, unless it has `manualSelector`.

    A deletion without a propagation policy orphans its pods, as in batch/v1 upstream.
    """

    orphans_by_default = True
    is_copyable = False

    def for_create(self, obj: Job) -> Job:
        created = super().for_create(obj)
        if obj.spec.manual_selector or not obj.name:
            return created
        return created.with_spec(_generate_labels(created))

    def complete(self, obj: Job) -> Job:
        before = obj.spec.template.metadata.labels or {}
        if obj.spec.manual_selector or JOB_NAME in before:
            return obj
        job = obj.with_spec(_generate_labels(obj))  # the name was generated
        if obj.labels == before:  # by default, those of the template
            job = job.with_metadata(labels=job.spec.template.metadata.labels)
        return job


def _generate_labels(job: Job) -> JobSpec:
    """Returns the spec with generated labels and selector. Values that are set are kept.

    Validation rejects values that contradict the generated ones.
    """
    template, selector = job.spec.template, job.spec.selector or LabelSelector()
    labels = {
        LEGACY_JOB_NAME: job.name,
        JOB_NAME: job.name,
        LEGACY_CONTROLLER_UID: job.uid,
        CONTROLLER_UID: job.uid,
        **(template.metadata.labels or {}),
    }
    chosen = {CONTROLLER_UID: job.uid, **(selector.match_labels or {})}
    return job.spec.replace(
        template=template.replace(metadata=template.metadata.replace(labels=labels)),
        selector=selector.replace(match_labels=chosen),
    )
