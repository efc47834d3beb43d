"""Validation of DaemonSets.

Source: pkg/apis/apps/validation/validation.go and pkg/registry/apps/daemonset/strategy.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from kcm import errors
from kcm.api.apps_v1 import (
    DaemonSet,
    DaemonSetSpec,
    DaemonSetUpdateStrategy,
    RollingUpdateDaemonSet,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    invalid,
    not_negative,
    not_supported,
    require_unchanged,
    required,
)
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import LabelSelector
from kcm.kinds.validation import meta
from kcm.kinds.validation.amounts import (
    amount_of,
    not_more_than_100_percent,
    positive_int_or_percent,
)
from kcm.kinds.validation.apps import workloads
from kcm.kinds.validation.podspec import pods


def create(daemon_set: DaemonSet) -> Faults:
    return [
        *meta.metadata(daemon_set, namespaced=True, name_rule=names.subdomain_faults),
        *_spec(daemon_set.spec),
    ]


def update(new: DaemonSet, old: DaemonSet) -> Faults:
    return [
        *meta.metadata_update(new, old),
        *_spec(new.spec),
        *require_unchanged("spec.selector", new.spec.selector, old.spec.selector),
    ]


def _spec(spec: DaemonSetSpec) -> Faults:
    return [
        *_selector(spec.selector, spec),
        *pods.template(spec.template, "spec.template"),
        *workloads.stays_up(spec.template, "DaemonSet"),
        *not_negative("spec.minReadySeconds", spec.min_ready_seconds),
        *_strategy(spec.update_strategy, "spec.updateStrategy"),
        *not_negative("spec.revisionHistoryLimit", spec.revision_history_limit),
    ]


def _selector(selector: LabelSelector | None, spec: DaemonSetSpec) -> Faults:
    faults = meta.label_selector(selector, "spec.selector") if selector is not None else []
    try:
        compiled = Selector.from_label_selector(selector)
        matches = compiled.matches(spec.template.metadata.labels)
    except errors.BadRequest:
        matches = True  # reported above
    if not matches:
        faults += workloads.selector_mismatch(spec.template)
    if selector is not None and not selector.match_labels and not selector.match_expressions:
        faults.append(invalid("spec.selector", selector, "empty selector is invalid for daemonset"))
    return faults


def _strategy(strategy: DaemonSetUpdateStrategy, path: str) -> Faults:
    if strategy.type == "OnDelete":
        return []
    if strategy.type != "RollingUpdate":
        return [not_supported(path, strategy, ("RollingUpdate", "OnDelete"))]
    if strategy.rolling_update is None:
        return [required(f"{path}.rollingUpdate")]
    return _rolling_update(strategy.rolling_update, f"{path}.rollingUpdate")


def _rolling_update(update: RollingUpdateDaemonSet, path: str) -> Faults:
    """Checks that exactly one of maxUnavailable and maxSurge is greater than 0."""
    unavailable = 0 if update.max_unavailable is None else update.max_unavailable
    surge = 0 if update.max_surge is None else update.max_surge
    faults = [
        *positive_int_or_percent(unavailable, f"{path}.maxUnavailable"),
        *positive_int_or_percent(surge, f"{path}.maxSurge"),
        *not_more_than_100_percent(unavailable, f"{path}.maxUnavailable"),
        *not_more_than_100_percent(surge, f"{path}.maxSurge"),
    ]
    if amount_of(unavailable) and amount_of(surge):
        detail = "may not be set when maxUnavailable is non-zero"
        faults.append(invalid(f"{path}.maxSurge", surge, detail))
    if not amount_of(unavailable) and not amount_of(surge):
        faults.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return faults


def status_update(new: DaemonSet, old: DaemonSet) -> Faults:
    status = new.status
    counts = {
        "currentNumberScheduled": status.current_number_scheduled,
        "numberMisscheduled": status.number_misscheduled,
        "desiredNumberScheduled": status.desired_number_scheduled,
        "numberReady": status.number_ready,
        "observedGeneration": status.observed_generation,
        "updatedNumberScheduled": status.updated_number_scheduled,
        "numberAvailable": status.number_available,
        "numberUnavailable": status.number_unavailable,
        "collisionCount": status.collision_count,
    }
    return [
        *meta.metadata_update(new, old),
        *workloads.counts(counts),
        *workloads.collisions(status.collision_count, old.status.collision_count),
    ]
