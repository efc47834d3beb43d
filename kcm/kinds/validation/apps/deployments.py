"""Validation of Deployments and ControllerRevisions.

Source: pkg/apis/apps/validation/validation.go and pkg/registry/apps/deployment/strategy.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.apps_v1 import (
    ControllerRevision,
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    RollingUpdateDeployment,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    forbidden,
    invalid,
    not_negative,
    not_supported,
    require_unchanged,
    required,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.amounts import (
    amount_of,
    not_more_than_100_percent,
    positive_int_or_percent,
)
from kcm.kinds.validation.apps import workloads
from kcm.kinds.validation.apps.replicasets import selector_and_template


def create(deployment: Deployment) -> Faults:
    return [
        *meta.metadata(deployment, namespaced=True, name_rule=names.subdomain_faults),
        *_spec(deployment.spec),
    ]


def update(new: Deployment, old: Deployment) -> Faults:
    return [
        *meta.metadata_update(new, old),
        *_spec(new.spec),
        *require_unchanged("spec.selector", new.spec.selector, old.spec.selector),
    ]


def _spec(spec: DeploymentSpec) -> Faults:
    deadline = spec.progress_deadline_seconds
    faults = [
        *not_negative("spec.replicas", spec.replicas),
        *selector_and_template(spec.selector, spec.template, owner="Deployment"),
        *_strategy(spec.strategy, "spec.strategy"),
        *not_negative("spec.minReadySeconds", spec.min_ready_seconds),
        *not_negative("spec.revisionHistoryLimit", spec.revision_history_limit),
        *not_negative("spec.progressDeadlineSeconds", deadline),
    ]
    if deadline is not None and deadline <= (spec.min_ready_seconds or 0):
        detail = "must be greater than minReadySeconds"
        faults.append(invalid("spec.progressDeadlineSeconds", deadline, detail))
    return faults


def _strategy(strategy: DeploymentStrategy, path: str) -> Faults:
    if strategy.type == "Recreate":
        if strategy.rolling_update is None:
            return []
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [forbidden(f"{path}.rollingUpdate", detail)]
    if strategy.type != "RollingUpdate":
        return [not_supported(path, strategy, ("Recreate", "RollingUpdate"))]
    if strategy.rolling_update is None:
        detail = "this should be defaulted and never be nil"
        return [required(f"{path}.rollingUpdate", detail)]
    return _rolling_update(strategy.rolling_update, f"{path}.rollingUpdate")


def _rolling_update(update: RollingUpdateDeployment, path: str) -> Faults:
    unavailable = 0 if update.max_unavailable is None else update.max_unavailable
    surge = 0 if update.max_surge is None else update.max_surge
    faults = [
        *positive_int_or_percent(unavailable, f"{path}.maxUnavailable"),
        *positive_int_or_percent(surge, f"{path}.maxSurge"),
    ]
    if amount_of(unavailable) == 0 and amount_of(surge) == 0:
        detail = "may not be 0 when `maxSurge` is 0"
        faults.append(invalid(f"{path}.maxUnavailable", unavailable, detail))
    return faults + not_more_than_100_percent(unavailable, f"{path}.maxUnavailable")


def status_update(new: Deployment, old: Deployment) -> Faults:
    status = new.status
    counts = {
        "observedGeneration": status.observed_generation,
        "replicas": status.replicas,
        "updatedReplicas": status.updated_replicas,
        "readyReplicas": status.ready_replicas,
        "availableReplicas": status.available_replicas,
        "unavailableReplicas": status.unavailable_replicas,
        "terminatingReplicas": status.terminating_replicas,
        "collisionCount": status.collision_count,
    }
    parts = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return [
        *meta.metadata_update(new, old),
        *workloads.pod_counts(counts, *parts),
        *workloads.collisions(status.collision_count, old.status.collision_count),
    ]


def create_revision(revision: ControllerRevision) -> Faults:
    faults = meta.metadata(revision, namespaced=True, name_rule=names.subdomain_faults)
    if revision.data is None:
        faults.append(required("data", "data is mandatory"))
    elif not isinstance(revision.data, dict):
        faults.append(required("data", "data must be a valid JSON object"))
    return faults + not_negative("revision", revision.revision)


def update_revision(new: ControllerRevision, old: ControllerRevision) -> Faults:
    faults = meta.metadata_update(new, old) + not_negative("revision", new.revision)
    return faults + require_unchanged("data", new.data, old.data)
