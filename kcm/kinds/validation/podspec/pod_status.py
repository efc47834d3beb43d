"""Validation of a pod's status.

Source: pkg/apis/core/validation/validation.go (ValidatePodStatusUpdate), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.core_v1 import ContainerStatus, Pod, PodSpec, PodStatus
from kcm.api.core_v1.container_statuses import LinuxContainerUser
from kcm.api.pods.restarts import may_restart_all, restarts_after
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import (
    Faults,
    forbidden,
    invalid,
    invalid_all,
    require_unchanged,
)
from kcm.kinds.validation import addresses, meta
from kcm.kinds.validation.podspec.claims import claim_statuses, extended_claim_status
from kcm.kinds.validation.podspec.security import user_id

_SYSTEM_CONDITIONS = frozenset({"PodScheduled", "Ready", "Initialized"})
_ONE_OF_EACH = "may specify no more than one IP for each IP family"


def update(new: Pod, old: Pod) -> Faults:
    faults = meta.metadata_update(new, old)
    faults += _observed(new.status.observed_generation, "status.observedGeneration")
    for index, condition in enumerate(new.status.conditions or ()):
        where = f"status.conditions[{index}].observedGeneration"
        faults += _observed(condition.observed_generation, where)
        if condition.type not in _SYSTEM_CONDITIONS:
            # As in upstream's messages, this path begins with metadata.
            path = f"metadata.conditions[{index}].Type"
            faults += metadata_checks.label_key(condition.type, path)
    if new.spec.node_name != old.spec.node_name:
        faults.append(forbidden("status.nodeName", "may not be changed directly"))
    nominated = new.status.nominated_node_name
    if nominated and nominated != old.status.nominated_node_name:
        path = "status.nominatedNodeName"
        faults += invalid_all(path, nominated, names.subdomain_faults(nominated))
        if old.spec.node_name:
            detail = "may not be set on pods that are already bound to a node"
            faults.append(forbidden(path, detail))
    if old.status.qos_class:  # pods of earlier versions may not have it yet
        faults += require_unchanged("status.qosClass", new.status.qos_class, old.status.qos_class)
    statuses, claims = new.status.resource_claim_statuses or (), new.spec.resource_claims or ()
    faults += claim_statuses(statuses, claims, "status.resourceClaimStatuses")
    extended = new.status.extended_resource_claim_status
    if extended is not None:
        path = "status.extendedResourceClaimStatus"
        faults += extended_claim_status(extended, new.spec, path)
    return [
        *faults,
        *_transitions(new.status, old),
        *_addresses(new.status, old.status),
        *_users(new),
    ]


def _observed(generation: int | None, path: str) -> Faults:
    if generation is None or generation >= 0:
        return []
    return [invalid(path, generation, "must be a non-negative integer")]


def _users(pod: Pod) -> Faults:
    """Checks the users of containers, which have ids on Linux only."""
    on_windows = pod.spec.os is not None and pod.spec.os.name == "windows"
    faults: Faults = []
    for field, statuses in (
        ("containerStatuses", pod.status.container_statuses),
        ("initContainerStatuses", pod.status.init_container_statuses),
        ("ephemeralContainerStatuses", pod.status.ephemeral_container_statuses),
    ):
        for index, status in enumerate(statuses or ()):
            linux = status.user.linux if status.user is not None else None
            path = f"status.{field}[{index}].user.linux"
            if linux is not None and on_windows:
                faults.append(forbidden(path, "cannot be set for a windows pod"))
            elif linux is not None:
                faults += _linux_user(linux, path)
    return faults


def _linux_user(user: LinuxContainerUser, path: str) -> Faults:
    groups = enumerate(user.supplemental_groups or ())
    return [
        *user_id(user.uid, f"{path}.uid"),
        *user_id(user.gid, f"{path}.gid"),
        *(
            fault
            for n, group in groups
            for fault in user_id(group, f"{path}.supplementalGroups[{n}]")
        ),
    ]


def _transitions(new: PodStatus, old: Pod) -> Faults:
    if may_restart_all(old.spec):
        return []
    before = old.status
    return [
        *_stay_terminated(
            new.container_statuses, before.container_statuses, "containerStatuses", old.spec
        ),
        *_stay_terminated(
            new.init_container_statuses,
            before.init_container_statuses,
            "initContainerStatuses",
            old.spec,
        ),
    ]


def _stay_terminated(
    new: Sequence[ContainerStatus] | None,
    old: Sequence[ContainerStatus] | None,
    field: str,
    spec: PodSpec,
) -> Faults:
    """Checks that a terminated container that is not restarted stays terminated.

    `field` is the field of the statuses.
    """
    containers = {c.name: c for c in (*spec.containers, *(spec.init_containers or ()))}
    after = {status.name: status.state for status in new or ()}
    detail = "may not be transitioned to non-terminated state"
    faults: Faults = []
    for index, status in enumerate(old or ()):
        ended = status.state.terminated if status.state else None
        if ended is None or status.name not in after:
            continue
        state, container = after[status.name], containers.get(status.name)
        if state is not None and state.terminated is not None:
            continue
        if container is None or not restarts_after(container, spec, ended.exit_code):
            faults.append(forbidden(f"status.{field}[{index}].state", detail))
    return faults


def _addresses(new: PodStatus, old: PodStatus) -> Faults:
    faults: Faults = []
    for field, given, stored in (
        ("podIPs", new.pod_ips, old.pod_ips),
        ("hostIPs", new.host_ips, old.host_ips),
    ):
        path, texts = f"status.{field}", [entry.ip for entry in given or ()]
        before = {entry.ip for entry in stored or ()}
        for index, text in enumerate(texts):
            faults += addresses.address(text, f"{path}[{index}]", before)
        families = {type(addresses.parse(text)) for text in texts}
        if len(texts) > 1 and len(texts) != len(families):
            faults.append(invalid(path, ", ".join(texts), _ONE_OF_EACH))
    return faults
