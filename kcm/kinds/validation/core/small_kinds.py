"""Validation of kinds with few rules: Namespace, Lease, Event, PriorityClass, PodTemplate.

Source: pkg/apis/core/validation/{validation,events}.go and
pkg/apis/{coordination,scheduling}/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api import events_v1
from kcm.api.coordination_v1 import Lease, LeaseSpec
from kcm.api.core_v1 import Event, Namespace
from kcm.api.core_v1.pods import PodTemplate
from kcm.api.scheduling_v1 import PriorityClass
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    NOT_NEGATIVE,
    Faults,
    forbidden,
    invalid,
    invalid_all,
    not_supported,
    one_of,
    require_unchanged,
    required,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.podspec import pods

_LEASE_STRATEGIES = ("OldestEmulationVersion",)
_PREEMPTION = ("Never", "PreemptLowerPriority")
_HIGHEST_USER_PRIORITY = 1_000_000_000
_SYSTEM_PREFIX = "system-"
_SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_EVENT_LIMITS = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}


def create_namespace(namespace: Namespace) -> Faults:
    faults = meta.metadata(namespace, namespaced=False, name_rule=names.label_faults)
    return faults + _namespace_finalizers(namespace)


def finalize_namespace(new: Namespace, old: Namespace) -> Faults:
    faults = meta.metadata_update(new, old)
    for index, name in enumerate(new.spec.finalizers or ()):
        faults += meta.finalizer(name, f"spec.finalizers[{index}]")
    return faults


def update_namespace(new: Namespace, old: Namespace) -> Faults:
    return meta.metadata_update(new, old) + _namespace_finalizers(new)


def _namespace_finalizers(namespace: Namespace) -> Faults:
    faults: Faults = []
    for name in namespace.spec.finalizers or ():
        faults += meta.finalizer(name, "spec.finalizers")
    return faults


def update_namespace_status(new: Namespace, old: Namespace) -> Faults:
    deleting, phase = new.deleting, new.status.phase
    expected = "Terminating" if deleting else "Active"
    faults = meta.metadata_update(new, old)
    if phase != expected:
        state = "not empty" if deleting else "empty"
        detail = f"may only be '{expected}' if `deletionTimestamp` is {state}"
        faults.append(invalid("status.Phase", phase or "", detail))
    return faults


def create_lease(lease: Lease) -> Faults:
    faults = meta.metadata(lease, namespaced=True, name_rule=names.subdomain_faults)
    return faults + _lease_spec(lease.spec)


def update_lease(new: Lease, old: Lease) -> Faults:
    return meta.metadata_update(new, old) + _lease_spec(new.spec)


def _lease_spec(spec: LeaseSpec) -> Faults:
    faults: Faults = []
    duration = spec.lease_duration_seconds
    if duration is not None and duration <= 0:
        faults.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    transitions = spec.lease_transitions
    if transitions is not None and transitions < 0:
        faults.append(invalid("spec.leaseTransitions", transitions, NOT_NEGATIVE))
    if spec.strategy is not None:
        faults += _lease_strategy(spec.strategy)
    if spec.preferred_holder and not spec.strategy:
        detail = "may only be specified if `strategy` is defined"
        faults.append(forbidden("spec.preferredHolder", detail))
    return faults


def _lease_strategy(strategy: str) -> Faults:
    path = "spec.strategy.strategy"  # upstream's path repeats it
    if "/" in strategy:
        return invalid_all(path, strategy, names.qualified_name_faults(strategy))
    if strategy in _LEASE_STRATEGIES:
        return []
    return [not_supported(path, strategy, _LEASE_STRATEGIES)]


def create_event(event: Event) -> Faults:
    faults = meta.metadata(event, namespaced=True, name_rule=names.path_segment_faults)
    return faults + _event(event)


def update_event(new: Event, old: Event) -> Faults:
    return meta.metadata_update(new, old) + _event(new)


def _event(event: Event) -> Faults:
    about, namespace = event.involved_object.namespace or "", event.namespace
    faults: Faults = []
    if event.event_time is None:
        agree = about == namespace if about else namespace in {"", "default"}
    else:
        agree = bool(about) or namespace in {"default", "kube-system"}
        faults += _new_style(event)
    if not agree:
        detail = "does not match event.namespace"
        faults.append(invalid("involvedObject.namespace", about, detail))
    return faults


def _new_style(event: Event) -> Faults:
    """Returns the faults of an Event with an eventTime, which must name its reporter and action."""
    values = {
        "reportingInstance": event.reporting_instance,
        "action": event.action or "",
        "reason": event.reason or "",
        "message": event.message or "",
    }
    faults: Faults = []
    if not event.reporting_component:
        faults.append(required("reportingComponent"))
    complaints = names.qualified_name_faults(event.reporting_component)
    faults += invalid_all("reportingComponent", event.reporting_component, complaints)
    for field, value in values.items():
        limit = _EVENT_LIMITS[field]
        if not value and field != "message":
            faults.append(required(field))
        if len(value.encode(errors="replace")) > limit:
            faults.append(invalid(field, "", f"can have at most {limit} characters"))
    return faults


def create_new_event(event: events_v1.Event) -> Faults:
    """Checks a new Event of events.k8s.io/v1."""
    faults = create_event(events_v1.as_core(event))
    if event.event_time is None:
        faults.append(required("eventTime"))
    return faults


def update_new_event(new: events_v1.Event, old: events_v1.Event) -> Faults:
    return update_event(events_v1.as_core(new), events_v1.as_core(old))


def create_priority_class(priority_class: PriorityClass) -> Faults:
    return [
        *meta.metadata(priority_class, namespaced=False, name_rule=names.subdomain_faults),
        *_priority(priority_class),
        *one_of("preemptionPolicy", priority_class.preemption_policy, _PREEMPTION),
    ]


def _priority(priority_class: PriorityClass) -> Faults:
    if priority_class.name.startswith(_SYSTEM_PREFIX):
        if _SYSTEM_CLASSES.get(priority_class.name) == priority_class.value:
            return []
        prefix = f"priority class names with '{_SYSTEM_PREFIX}' prefix"
        return [forbidden("metadata.name", f"{prefix} are reserved for system use only")]
    if priority_class.value > _HIGHEST_USER_PRIORITY:
        highest = _HIGHEST_USER_PRIORITY
        detail = f"maximum allowed value of a user defined priority is {highest}"
        return [forbidden("value", detail)]
    return []


def update_priority_class(new: PriorityClass, old: PriorityClass) -> Faults:
    faults = meta.metadata_update(new, old)
    if new.value != old.value:
        faults.append(forbidden("value", "may not be changed in an update."))
    return faults + require_unchanged(
        "preemptionPolicy", new.preemption_policy, old.preemption_policy
    )


def create_pod_template(pod_template: PodTemplate) -> Faults:
    faults = meta.metadata(pod_template, namespaced=True, name_rule=names.subdomain_faults)
    return faults + pods.template(pod_template.template, "template")


def update_pod_template(new: PodTemplate, old: PodTemplate) -> Faults:
    return meta.metadata_update(new, old) + pods.template(new.template, "template")
