"""Validation of StatefulSets.

Source: pkg/apis/apps/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm import errors
from kcm.api.apps_v1 import (
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from kcm.api.core_v1 import PodTemplateSpec, Volume
from kcm.api.core_v1.volume_sources import PersistentVolumeClaimVolumeSource
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import (
    Faults,
    collect_tentative,
    forbidden,
    invalid,
    invalid_all,
    not_negative,
    not_supported,
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
from kcm.kinds.validation.volume_claims import claim_spec

_ORDERS = ("OrderedReady", "Parallel")
_CHANGEABLE = (
    "replicas",
    "ordinals",
    "template",
    "update_strategy",
    "revision_history_limit",
    "persistent_volume_claim_retention_policy",
    "min_ready_seconds",
)
_FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)


def create(stateful_set: StatefulSet) -> Faults:
    # A label, not a subdomain: pods' names begin with it and are used as host names.
    spec = stateful_set.spec
    return [
        *meta.metadata(stateful_set, namespaced=True, name_rule=names.label_faults),
        *_spec(spec),
        *_claim_templates(spec),
        *_service_name(spec.service_name),
    ]


def update(new: StatefulSet, old: StatefulSet) -> Faults:
    was_sound = not collect_tentative(lambda: _spec(old.spec))
    faults = meta.metadata_update(new, old) + _spec(new.spec, whole=was_sound)
    fixed = {field: getattr(old.spec, field) for field in _CHANGEABLE}
    if new.spec.replace(**fixed) != old.spec:
        faults.append(forbidden("spec", _FIXED))
    return faults


def _claim_templates(spec: StatefulSetSpec) -> Faults:
    return [
        fault
        for index, claim in enumerate(spec.volume_claim_templates or ())
        for fault in claim_spec(claim.spec, f"spec.volumeClaimTemplates[{index}].spec")
    ]


def _service_name(name: str | None) -> Faults:
    return invalid_all("spec.serviceName", name, names.label_faults(name)) if name else []


def _spec(spec: StatefulSetSpec, *, whole: bool = True) -> Faults:
    """Checks a spec. Unless `whole`, the spec of its pods is left out."""
    return [
        *_order(spec.pod_management_policy),
        *_strategy(spec.update_strategy, "spec.updateStrategy"),
        *_retention(spec),
        *not_negative("spec.replicas", spec.replicas),
        *not_negative("spec.minReadySeconds", spec.min_ready_seconds),
        *not_negative("spec.ordinals.start", spec.ordinals.start if spec.ordinals else None),
        *_selector(spec.selector),
        *_template(spec, whole=whole),
    ]


def _order(policy: str | None) -> Faults:
    path = "spec.podManagementPolicy"
    if not policy:
        return [required(path)]
    if policy in _ORDERS:
        return []
    return [invalid(path, policy, "must be 'OrderedReady' or 'Parallel'")]


def _strategy(strategy: StatefulSetUpdateStrategy, path: str) -> Faults:
    update = strategy.rolling_update
    match strategy.type:
        case None | "":
            return [required(path)]
        case "OnDelete":
            if update is None:
                return []
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            return [invalid(f"{path}.rollingUpdate", update, detail)]
        case "RollingUpdate":
            return [] if update is None else _rolling_update(update, f"{path}.rollingUpdate")
    return [invalid(path, strategy, "must be 'RollingUpdate' or 'OnDelete'")]


def _rolling_update(update: RollingUpdateStatefulSetStrategy, path: str) -> Faults:
    faults = not_negative(f"{path}.partition", update.partition)
    unavailable = update.max_unavailable
    if unavailable is None:
        return faults
    path = f"{path}.maxUnavailable"
    faults += positive_int_or_percent(unavailable, path)
    if amount_of(unavailable) == 0:
        faults.append(invalid(path, unavailable, "cannot be 0"))
    return faults + not_more_than_100_percent(unavailable, path)


def _retention(spec: StatefulSetSpec) -> Faults:
    policy = spec.persistent_volume_claim_retention_policy
    if policy is None:
        return []
    path = "spec.persistentVolumeClaimRetentionPolicy"
    actions = {"whenDeleted": policy.when_deleted, "whenScaled": policy.when_scaled}
    return [
        not_supported(f"{path}.{field}", value or "", ("Delete", "Retain"))
        for field, value in actions.items()
        if value not in ("Delete", "Retain")
    ]


def _selector(selector: LabelSelector | None) -> Faults:
    if selector is None:
        return [required("spec.selector")]
    faults = meta.label_selector(selector, "spec.selector")
    if not selector.match_labels and not selector.match_expressions:
        detail = "empty selector is invalid for statefulset"
        faults.append(invalid("spec.selector", selector, detail))
    return faults


def _template(spec: StatefulSetSpec, *, whole: bool) -> Faults:
    """Checks a pod template as its pods will be: with their claims as volumes, and without the
    names that the controller sets.
    """
    template = spec.template
    faults = _selector_matches(spec.selector, template)
    if whole:
        faults += pods.template(_as_in_pods(spec), "spec.template")
    else:
        path, annotations = "spec.template.annotations", template.metadata.annotations or {}
        faults += metadata_checks.annotation_map(annotations, path)
        faults += pods.rules_in_annotations(annotations, template.spec, path)
    faults += metadata_checks.labels(template.metadata.labels, "spec.template.labels")
    return faults + workloads.stays_up(template, "StatefulSet")


def _as_in_pods(spec: StatefulSetSpec) -> PodTemplateSpec:
    pod_spec = spec.template.spec
    claims = {claim.name or "": claim for claim in spec.volume_claim_templates or ()}
    if not (claims or pod_spec.hostname or pod_spec.subdomain):
        return spec.template
    added = [
        Volume(
            name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name)
        )
        for name in claims
    ]
    kept = [volume for volume in pod_spec.volumes or () if volume.name not in claims]
    spec_of_pods = pod_spec.replace(volumes=[*added, *kept], hostname=None, subdomain=None)
    return spec.template.replace(spec=spec_of_pods)


def _selector_matches(selector: LabelSelector | None, template: PodTemplateSpec) -> Faults:
    try:
        compiled = Selector.from_label_selector(selector)
    except errors.BadRequest:
        return [invalid("spec.selector", selector, "")]
    if compiled.empty or compiled.matches(template.metadata.labels):
        return []
    return workloads.selector_mismatch(template)


def status_update(new: StatefulSet, old: StatefulSet) -> Faults:
    status = new.status
    counts = {
        "replicas": status.replicas,
        "readyReplicas": status.ready_replicas,
        "currentReplicas": status.current_replicas,
        "updatedReplicas": status.updated_replicas,
        "availableReplicas": status.available_replicas,
        "observedGeneration": status.observed_generation,
        "collisionCount": status.collision_count,
    }
    parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    return [
        *workloads.pod_counts(counts, *parts, ready="status.readyReplicas"),
        *meta.metadata_update(new, old),
        *workloads.collisions(status.collision_count, old.status.collision_count),
    ]
