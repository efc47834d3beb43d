"""Validation of pods and pod templates.

Source: pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from kcm.api.core_v1 import (
    Pod,
    PodSchedulingGate,
    PodSpec,
    PodTemplateSpec,
    ResourceRequirements,
    Toleration,
)
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import (
    ROOT,
    Faults,
    duplicate,
    forbidden,
    invalid,
    invalid_all,
    not_supported,
    one_of,
    required,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.podspec import environment, gated, network, security, windows
from kcm.kinds.validation.podspec.affinity import affinity, without_stored_values
from kcm.kinds.validation.podspec.claims import pod_claims
from kcm.kinds.validation.podspec.containers import (
    containers,
    ephemeral_containers,
    image_spaces,
    init_containers,
)
from kcm.kinds.validation.podspec.context import PodContext
from kcm.kinds.validation.podspec.pod_resources import pod_resources
from kcm.kinds.validation.podspec.resources import no_restarts, requirements
from kcm.kinds.validation.podspec.spread import topology_spread
from kcm.kinds.validation.podspec.volumes.sources import volumes

_INT32_MAX = 2**31 - 1
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_OPERATING_SYSTEMS = ("linux", "windows")
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
MIRROR = "kubernetes.io/config.mirror"


def create(pod: Pod) -> Faults:
    faults = pod_metadata_and_spec(pod)
    if pod.spec.ephemeral_containers:
        faults.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if pod.spec.node_name and pod.spec.scheduling_gates:
        detail = "cannot be set until all schedulingGates have been cleared"
        faults.append(forbidden("spec.nodeName", detail))
    for index, container in enumerate(pod.spec.init_containers or ()):
        if container.restart_policy != "Always":
            policies, path = container.resize_policy or (), f"spec.initContainers[{index}]"
            faults += no_restarts(policies, path)
    return faults + security.matching_profiles(pod)


def pod_metadata_and_spec(pod: Pod) -> Faults:
    """Checks a pod without what only its creation or its change forbids."""
    return [
        *meta.metadata(pod, namespaced=True, name_rule=names.subdomain_faults),
        *rules_in_annotations(pod.annotations, pod.spec, "metadata.annotations"),
        *pod_spec(pod.spec, "spec", pod.metadata.name or ""),
        *_tokens_without_account(pod.spec),
        *image_spaces(pod.spec.containers, "spec.containers"),
        *image_spaces(pod.spec.init_containers or (), "spec.initContainers"),
    ]


def _tokens_without_account(spec: PodSpec) -> Faults:
    if spec.service_account_name:
        return []
    return [
        forbidden(
            f"spec.volumes[{index}].projected.sources[{at}].serviceAccountToken",
            "must not be specified when serviceAccountName is not set",
        )
        for index, volume in enumerate(spec.volumes or ())
        for at, source in enumerate(volume.projected.sources if volume.projected else ())
        if source.service_account_token is not None
    ]


def rules_in_annotations(annotations: Mapping[str, str], spec: PodSpec, path: str) -> Faults:
    """Checks the annotations that Kubernetes itself reads."""
    faults: Faults = []
    if MIRROR in annotations and not spec.node_name:
        detail = "must set spec.nodeName if mirror pod annotation is set"
        faults.append(invalid(f"{path}[{MIRROR}]", annotations[MIRROR], detail))
    if MIRROR in annotations and spec.resource_claims:
        faults.append(forbidden(ROOT, "static pods do not support resource claims"))
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        faults.append(invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer"))
    return faults + security.profile_annotations(annotations, spec, path)


def _is_int32(text: str) -> bool:
    """Reports whether the text is an int32 in canonical form: no plus sign or leading zeros."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10:
        return False
    if len(digits) > 1 and digits[0] == "0":
        return False
    return -_INT32_MAX - 1 <= int(text) <= _INT32_MAX


def template(pod_template: PodTemplateSpec, path: str) -> Faults:
    metadata, spec = pod_template.metadata, pod_template.spec
    annotations = f"{path}.annotations"  # as upstream, without the metadata
    faults = [
        *metadata_checks.labels(metadata.labels, f"{path}.labels"),
        *metadata_checks.annotation_map(metadata.annotations, annotations),
        *rules_in_annotations(metadata.annotations or {}, spec, annotations),
        *pod_spec(spec, f"{path}.spec"),
    ]
    if spec.ephemeral_containers:
        detail = "ephemeral containers not allowed in pod template"
        faults.append(forbidden(f"{path}.spec.ephemeralContainers", detail))
    return faults


def pod_spec(spec: PodSpec, path: str, pod_name: str | None = None) -> Faults:
    """Checks the spec of a pod, or of a template, for which `pod_name` is None."""
    pod = PodContext.of(spec)
    main = [container.name for container in spec.containers]
    init = spec.init_containers or []
    ephemeral = spec.ephemeral_containers or []
    others = [*main, *(container.name for container in init)]
    return [
        *volumes(spec.volumes or (), f"{path}.volumes", pod_name),
        *pod_claims(spec.resource_claims or (), f"{path}.resourceClaims"),
        *containers(spec.containers, f"{path}.containers", pod),
        *init_containers(init, f"{path}.initContainers", pod, main),
        *ephemeral_containers(ephemeral, f"{path}.ephemeralContainers", pod, others),
        *pod_resources(spec, f"{path}.resources"),
        *network.host_ports(spec, path, in_pod=pod_name is not None),
        *one_of(f"{path}.restartPolicy", spec.restart_policy, _RESTART_POLICIES),
        *one_of(f"{path}.dnsPolicy", spec.dns_policy, _DNS_POLICIES),
        *metadata_checks.labels(spec.node_selector, f"{path}.nodeSelector"),
        *security.of_pod(spec, f"{path}.securityContext"),
        *affinity(spec.affinity, f"{path}.affinity"),
        *network.dns(spec, f"{path}.dnsConfig"),
        *_gates(spec, path),
        *topology_spread(
            spec.topology_spread_constraints or (), f"{path}.topologySpreadConstraints"
        ),
        *windows.host_process(spec, path),
        *network.host_users(spec, path),
        *network.hostname_override(spec, f"{path}.hostnameOverride"),
        *environment.file_volumes(spec, path),
        *_names(spec, path),
        *_numbers(spec, path),
        *tolerations(spec.tolerations or (), f"{path}.tolerations"),
        *network.host_aliases(spec.host_aliases or (), f"{path}.hostAliases"),
        *_preemption(spec, path),
        *requirements(ResourceRequirements(limits=spec.overhead), f"{path}.overhead"),
        *_operating_system(spec, path),
    ]


def _gates(spec: PodSpec, path: str) -> Faults:
    faults: Faults = []
    for index, gate in enumerate(spec.readiness_gates or ()):
        faults += metadata_checks.label_key(
            gate.condition_type, f"{path}.readinessGates[{index}].conditionType"
        )
    seen: set[str] = set()
    for index, scheduling_gate in enumerate(spec.scheduling_gates or ()):
        where = f"{path}.schedulingGates[{index}]"
        faults += metadata_checks.label_key(scheduling_gate.name, where)
        if scheduling_gate.name in seen:
            faults.append(duplicate(where, scheduling_gate.name))
        seen.add(scheduling_gate.name)
    return faults


def _names(spec: PodSpec, path: str) -> Faults:
    subdomains = {
        "serviceAccountName": spec.service_account_name,
        "nodeName": spec.node_name,
        "priorityClassName": spec.priority_class_name,
        "runtimeClassName": spec.runtime_class_name,
    }
    labels = {"hostname": spec.hostname, "subdomain": spec.subdomain}
    faults: Faults = []
    for field, name in subdomains.items():
        if name:
            faults += invalid_all(f"{path}.{field}", name, names.subdomain_faults(name))
    for field, name in labels.items():
        if name:
            faults += invalid_all(f"{path}.{field}", name, names.label_faults(name))
    return faults


def _numbers(spec: PodSpec, path: str) -> Faults:
    deadline = spec.active_deadline_seconds
    if deadline is None or 1 <= deadline <= _INT32_MAX:
        return []
    detail = f"must be between 1 and {_INT32_MAX}, inclusive"
    return [invalid(f"{path}.activeDeadlineSeconds", deadline, detail)]


def _preemption(spec: PodSpec, path: str) -> Faults:
    if spec.preemption_policy is None:
        return []
    return one_of(f"{path}.preemptionPolicy", spec.preemption_policy, _PREEMPTION_POLICIES)


def _operating_system(spec: PodSpec, path: str) -> Faults:
    if spec.os is None:
        return []
    if not spec.os.name:
        return [required(f"{path}.os.name", "cannot be empty")]
    if spec.os.name not in _OPERATING_SYSTEMS:
        return [not_supported(f"{path}.os", spec.os.name, _OPERATING_SYSTEMS)]
    return (windows.on_linux if spec.os.name == "linux" else windows.on_windows)(spec, path)


def tolerations(tolerations: Iterable[Toleration], path: str) -> Faults:
    faults: Faults = []
    for index, toleration in enumerate(tolerations):
        where = f"{path}[{index}]"
        operator = toleration.operator or ""
        if toleration.key:
            faults += metadata_checks.label_key(toleration.key, f"{where}.key")
        elif operator != "Exists":
            detail = (
                "operator must be Exists when `key` is empty, "
                'which means "match all values and all keys"'
            )
            faults.append(invalid(f"{where}.operator", operator, detail))
        if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            faults.append(invalid(f"{where}.effect", toleration.effect or "", detail))
        faults += _toleration_operator(toleration, f"{where}.operator")
        if toleration.effect:
            faults += one_of(f"{where}.effect", toleration.effect, TAINT_EFFECTS)
    return faults


def _toleration_operator(toleration: Toleration, path: str) -> Faults:
    value = toleration.value or ""
    match toleration.operator or "":
        case "" | "Equal":
            complaints = ";".join(metadata_checks.label_value_faults(value))
            return [invalid(path, value, complaints)] if complaints else []
        case "Exists":
            detail = "value must be empty when `operator` is 'Exists'"
            return [invalid(path, toleration, detail)] if value else []
        case other:
            return [not_supported(path, other, ("Equal", "Exists"))]


_UPDATABLE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` "
        "(allow it to be set to 1 if it was previously negative)",
    )
)


def update(new: Pod, old: Pod) -> Faults:
    faults = meta.metadata_update(new, old) + _unlike_stored(pod_metadata_and_spec(new), old.spec)
    faults += mirror_annotation(new, old)
    for field in ("containers", "init_containers"):
        before, after = getattr(old.spec, field) or [], getattr(new.spec, field) or []
        if len(before) != len(after):
            path = f"spec.{'containers' if field == 'containers' else 'initContainers'}"
            return [*faults, forbidden(path, "pod updates may not add or remove containers")]
    deadline = _deadline_update(new.spec, old.spec)
    if deadline:
        return faults + deadline
    faults += _only_added_tolerations(new.spec, old.spec)
    faults += _only_removed_gates(new.spec.scheduling_gates or (), old.spec.scheduling_gates or ())
    faults += gated.narrowing(new.spec, old.spec)
    return faults + _rest_unchanged(new.spec, old.spec)


def _unlike_stored(faults: Faults, old: PodSpec) -> Faults:
    """Returns the faults without those that older versions allowed, and the stored pod has."""
    if not faults:
        return []
    affinity = gated.node_affinity(old)
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    stored = network.host_users(old, "spec")
    return [fault for fault in without_stored_values(faults, required) if fault not in stored]


def mirror_annotation(new: Pod, old: Pod) -> Faults:
    """Checks that the annotation of a static pod's mirror stays as it is."""
    path = f"metadata.annotations[{MIRROR}]"
    after, before = new.annotations.get(MIRROR), old.annotations.get(MIRROR)
    if after == before:
        return []
    verb = "add" if before is None else "remove or update"
    return [forbidden(path, f"may not {verb} mirror pod annotation")]


def _deadline_update(new: PodSpec, old: PodSpec) -> Faults:
    path = "spec.activeDeadlineSeconds"
    after, before = new.active_deadline_seconds, old.active_deadline_seconds
    if after is None:
        detail = "must not update from a positive integer to nil value"
        return [] if before is None else [invalid(path, None, detail)]
    if not 0 <= after <= _INT32_MAX:
        return [invalid(path, after, f"must be between 0 and {_INT32_MAX}, inclusive")]
    if before is not None and before < after:
        return [invalid(path, after, "must be less than or equal to previous value")]
    return []


def _only_added_tolerations(new: PodSpec, old: PodSpec) -> Faults:
    def bare(toleration: Toleration) -> tuple[str | None, ...]:
        return toleration.key, toleration.operator, toleration.value, toleration.effect

    after = set(map(bare, new.tolerations or ()))
    if after.issuperset(map(bare, old.tolerations or ())):
        return []
    detail = "existing toleration can not be modified except its tolerationSeconds"
    return [forbidden("spec.tolerations", detail)]


def _only_removed_gates(
    new: Iterable[PodSchedulingGate], old: Iterable[PodSchedulingGate]
) -> Faults:
    before = {gate.name for gate in old}
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.name}'",
        )
        for index, gate in enumerate(new)
        if gate.name not in before
    ]


def _rest_unchanged(new: PodSpec, old: PodSpec) -> Faults:
    if new == old:
        return []
    masked = _mask(new, old)
    if masked == old:
        return []
    changed = "\n".join(sorted(_list_changes(masked, old)))
    detail = f"pod updates may not change fields other than {_UPDATABLE}\n{changed}"
    return [forbidden("spec", detail)]


def _mask(new: PodSpec, old: PodSpec) -> PodSpec:
    """Returns `new` with every field that may change taken from `old`."""
    images = [
        container.replace(image=was.image)
        for container, was in zip(new.containers, old.containers, strict=True)
    ]
    init = [
        container.replace(image=was.image)
        for container, was in zip(new.init_containers or (), old.init_containers or (), strict=True)
    ]
    grace = new.termination_grace_period_seconds
    if grace == 1 and (old.termination_grace_period_seconds or 0) < 0:
        grace = old.termination_grace_period_seconds
    return gated.mask(new, old).replace(
        containers=images,
        init_containers=init or old.init_containers,
        active_deadline_seconds=old.active_deadline_seconds,
        scheduling_gates=old.scheduling_gates,
        tolerations=old.tolerations,
        termination_grace_period_seconds=grace,
    )


def _list_changes(new: PodSpec, old: PodSpec) -> Iterable[str]:
    after = new.model_dump(mode="json", by_alias=True, exclude_none=True)
    before = old.model_dump(mode="json", by_alias=True, exclude_none=True)
    for name in after.keys() | before.keys():
        if after.get(name) != before.get(name):
            was, is_now = json.dumps(before.get(name)), json.dumps(after.get(name))
            yield f"  spec.{name}: {was} -> {is_now}"
