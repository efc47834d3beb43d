"""Validation of a pod's status.

Source: pkg/apis/core/validation/validation.go (ValidatePodStatusUpdate), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

from kcm.api.core_v1 import ContainerStatus, Pod, PodStatus
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import Faults, forbidden, invalid, invalid_all
from kcm.kinds.validation import meta

_SYSTEM_CONDITIONS = frozenset({"PodScheduled", "Ready", "Initialized"})
_ONE_OF_EACH = "may specify no more than one IP for each IP family"
_NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def update(new: Pod, old: Pod) -> Faults:
    faults = meta.metadata_update(new, old)
    for index, condition in enumerate(new.status.conditions or ()):
        if condition.type not in _SYSTEM_CONDITIONS:
            # As in upstream's messages, this path begins with metadata.
            path = f"metadata.conditions[{index}].Type"
            faults += meta.label_key(condition.type, path)
    if new.spec.node_name != old.spec.node_name:
        faults.append(forbidden("status.nodeName", "may not be changed directly"))
    nominated = new.status.nominated_node_name
    if nominated and nominated != old.status.nominated_node_name:
        path = "status.nominatedNodeName"
        faults += invalid_all(path, nominated, names.subdomain_faults(nominated))
    return faults + _transitions(new.status, old) + _addresses(new.status)


def _transitions(new: PodStatus, old: Pod) -> Faults:
    policy = old.spec.restart_policy
    sidecars = {c.name for c in old.spec.init_containers or () if c.restart_policy == "Always"}
    return [
        *_stay_terminated(
            new.container_statuses, old.status.container_statuses, "containerStatuses", policy
        ),
        *_stay_terminated(
            new.init_container_statuses,
            [s for s in old.status.init_container_statuses or () if s.name not in sidecars],
            "initContainerStatuses",
            policy,
        ),
    ]


def _stay_terminated(
    new: Sequence[ContainerStatus] | None,
    old: Sequence[ContainerStatus] | None,
    field: str,
    policy: str | None,
) -> Faults:
    """Checks that a terminated container that is not restarted stays terminated.

    `policy` is the restart policy of the pod, `field` that of the statuses.
    """
    if policy == "Always":
        return []
    faults: Faults = []
    for index, status in enumerate(old or ()):
        ended = status.state.terminated if status.state else None
        if ended is None or (ended.exit_code != 0 and policy == "OnFailure"):
            continue
        for after in new or ():
            if after.name == status.name and not (after.state and after.state.terminated):
                detail = "may not be transitioned to non-terminated state"
                faults.append(forbidden(f"status.{field}[{index}].state", detail))
    return faults


def _addresses(status: PodStatus) -> Faults:
    addresses_of = {
        "podIPs": [entry.ip for entry in status.pod_ips or ()],
        "hostIPs": [entry.ip for entry in status.host_ips or ()],
    }
    faults: Faults = []
    for field, addresses in addresses_of.items():
        families = [_find_family(address) for address in addresses]
        faults += [
            invalid(f"status.{field}[{index}]", address, _NOT_AN_IP)
            for index, (address, family) in enumerate(zip(addresses, families, strict=True))
            if not family
        ]
        if len(families) > 1 and len(families) != len({*families}):
            faults.append(invalid(f"status.{field}", ", ".join(addresses), _ONE_OF_EACH))
    return faults


def _find_family(text: str) -> int:
    """Returns 4 or 6, 0 for a text that is not an IP address."""
    try:
        return ip_address(text).version
    except ValueError:
        return 0
