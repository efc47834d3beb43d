"""Validation of ReplicaSets.

Source: pkg/apis/apps/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm import errors
from kcm.api.apps_v1 import ReplicaSet, ReplicaSetSpec, ReplicaSetStatus
from kcm.api.core_v1 import PodTemplateSpec, ReplicationControllerStatus
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import Faults, invalid, not_negative, require_unchanged, required
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import LabelSelector
from kcm.kinds.validation import meta
from kcm.kinds.validation.apps import workloads
from kcm.kinds.validation.podspec import pods


def create(replica_set: ReplicaSet) -> Faults:
    return [
        *meta.metadata(replica_set, namespaced=True, name_rule=names.subdomain_faults),
        *_spec(replica_set.spec),
    ]


def update(new: ReplicaSet, old: ReplicaSet) -> Faults:
    return [
        *meta.metadata_update(new, old),
        *_spec(new.spec),
        *require_unchanged("spec.selector", new.spec.selector, old.spec.selector),
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
    """Checks selector and template of a ReplicaSet or Deployment; `owner` is its kind."""
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
    if not compiled.empty and not compiled.matches(template.metadata.labels):
        faults += workloads.selector_mismatch(template)
    faults += pods.template(template, "spec.template")
    return faults + workloads.stays_up(template, owner)


def status_update(new: ReplicaSet, old: ReplicaSet) -> Faults:
    terminating = new.status.terminating_replicas
    return [
        *meta.metadata_update(new, old),
        *not_negative("status.terminatingReplicas", terminating),
        *status_faults(new.status),
    ]


def status_faults(status: ReplicaSetStatus | ReplicationControllerStatus) -> Faults:
    """Checks the status of a ReplicaSet or ReplicationController."""
    counts = {
        "replicas": status.replicas,
        "fullyLabeledReplicas": status.fully_labeled_replicas,
        "readyReplicas": status.ready_replicas,
        "availableReplicas": status.available_replicas,
        "observedGeneration": status.observed_generation,
    }
    parts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    return workloads.pod_counts(counts, *parts)
