"""Rules for ReplicaSets.

Source: pkg/apis/apps/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm import errors
from kcm.api import names
from kcm.api.apps_v1 import ReplicaSet, ReplicaSetSpec
from kcm.api.core_v1 import PodTemplateSpec
from kcm.api.labels import Selector
from kcm.api.meta_v1 import LabelSelector
from kcm.api.validation import meta, pods
from kcm.api.validation.report import (
    Faults,
    forbidden,
    invalid,
    not_negative,
    not_supported,
    required,
    unchanged,
)


def create(replica_set: ReplicaSet) -> Faults:
    return [
        *meta.metadata(replica_set, namespaced=True, name_rule=names.subdomain_faults),
        *_spec(replica_set.spec),
    ]


def update(new: ReplicaSet, old: ReplicaSet) -> Faults:
    return [
        *meta.metadata_update(new, old),
        *_spec(new.spec),
        *unchanged("spec.selector", new.spec.selector, old.spec.selector),
    ]


def _spec(spec: ReplicaSetSpec) -> Faults:
    return [
        *not_negative("spec.replicas", spec.replicas),
        *not_negative("spec.minReadySeconds", spec.min_ready_seconds),
        *selector_and_template(spec.selector, spec.template, owner="ReplicaSet"),
    ]


def selector_and_template(
    selector: LabelSelector | None, template: PodTemplateSpec, *, owner: str
) -> Faults:
    """The part that ReplicaSets and Deployments share."""
    faults: Faults = []
    if selector is None:
        faults.append(required("spec.selector"))
    else:
        faults += meta.label_selector(selector, "spec.selector")
        if not selector.match_labels and not selector.match_expressions:
            detail = "empty selector is invalid for deployment"  # upstream's word for both kinds
            faults.append(invalid("spec.selector", selector, detail))
    try:
        compiled = Selector.from_label_selector(selector)
    except errors.BadRequest:
        return [*faults, invalid("spec.selector", selector, "invalid label selector")]
    return faults + _template(template, compiled, owner)


def _template(template: PodTemplateSpec, selector: Selector, owner: str) -> Faults:
    faults: Faults = []
    labels = template.metadata.labels
    if not selector.empty and not selector.matches(labels):
        detail = "`selector` does not match template `labels`"
        faults.append(invalid("spec.template.metadata.labels", labels or {}, detail))
    faults += pods.template(template, "spec.template")
    policy = template.spec.restart_policy
    if policy != "Always":
        path = "spec.template.spec.restartPolicy"
        faults.append(not_supported(path, policy or "", ("Always",)))
    if template.spec.active_deadline_seconds is not None:
        path = "spec.template.spec.activeDeadlineSeconds"
        faults.append(forbidden(path, f"activeDeadlineSeconds in {owner} is not Supported"))
    return faults


def status_update(new: ReplicaSet, old: ReplicaSet) -> Faults:
    status = new.status
    counts = {
        "replicas": status.replicas,
        "fullyLabeledReplicas": status.fully_labeled_replicas,
        "readyReplicas": status.ready_replicas,
        "availableReplicas": status.available_replicas,
        "observedGeneration": status.observed_generation,
        "terminatingReplicas": status.terminating_replicas,
    }
    faults = meta.metadata_update(new, old)
    for field, count in counts.items():
        faults += not_negative(f"status.{field}", count)
    for field in ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"):
        count = counts[field] or 0
        if count > status.replicas:
            detail = "cannot be greater than status.replicas"
            faults.append(invalid(f"status.{field}", count, detail))
    if (status.available_replicas or 0) > (status.ready_replicas or 0):
        detail = "cannot be greater than readyReplicas"
        faults.append(invalid("status.availableReplicas", status.available_replicas, detail))
    return faults
