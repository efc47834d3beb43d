"""Validation of ServiceCIDRs and IPAddresses.

Source: pkg/apis/networking/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from types import NoneType

from kcm.api.networking_v1 import IPAddress, ParentReference, ServiceCIDR, ServiceCIDRSpec
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    invalid,
    invalid_all,
    require_unchanged,
    required,
)
from kcm.kinds.validation import addresses, meta

_MOST_RANGES = 2  # one of each IP family
_RANGES = "spec.cidrs"
_IMMUTABLE = "field is immutable"


def create_service_cidr(obj: ServiceCIDR) -> Faults:
    faults = meta.metadata(obj, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _ranges(obj.spec)


def _ranges(spec: ServiceCIDRSpec) -> Faults:
    cidrs = spec.cidrs or []
    if not cidrs:
        return [required(_RANGES, "at least one CIDR required")]
    if len(cidrs) > _MOST_RANGES:
        return [invalid(_RANGES, spec, "may only hold up to 2 values")]
    families = [type(addresses.parse_cidr(text)) for text in cidrs]
    if NoneType not in families and len(set(families)) < len(families):
        why = (
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and "
            "2001:db8::/64"
        )
        return [invalid(_RANGES, spec, why)]
    return [
        fault
        for index, text in enumerate(cidrs)
        for fault in addresses.canonical_cidr(text, f"{_RANGES}[{index}]")
    ]


def update_service_cidr(new: ServiceCIDR, old: ServiceCIDR) -> Faults:
    """Checks an update, which may only add a range of the other IP family."""
    faults = meta.metadata_update(new, old)
    after, before = new.spec.cidrs or [], old.spec.cidrs or []
    if len(after) == len(before):
        for index, (text, was) in enumerate(zip(after, before, strict=True)):
            faults += require_unchanged(f"{_RANGES}[{index}]", text, was)
        return faults
    if (len(before), len(after)) != (1, _MOST_RANGES):
        return [*faults, invalid(_RANGES, after, _IMMUTABLE)]
    return faults + require_unchanged(f"{_RANGES}[0]", after[0], before[0]) + _ranges(new.spec)


def create_ip_address(obj: IPAddress) -> Faults:
    return meta.metadata(obj, namespaced=False, name_rule=_address_name) + _parent(
        obj.spec.parent_ref, "spec.parentRef"
    )


def _address_name(text: str) -> list[str]:
    """Returns why a text is not an address in canonical form, nothing if it is one."""
    parsed = addresses.parse(text)
    if parsed is None:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    canonical = str(parsed)
    return [] if canonical == text else [f'must be in canonical form ("{canonical}")']


def _parent(parent: ParentReference | None, path: str) -> Faults:
    if parent is None:
        return [required(path)]
    faults: Faults = []
    if parent.group:
        faults += invalid_all(f"{path}.group", parent.group, names.subdomain_faults(parent.group))
    for field, value in (("resource", parent.resource), ("name", parent.name)):
        if not value:
            faults.append(required(f"{path}.{field}"))
        else:
            why = names.path_segment_faults(value)
            faults += invalid_all(f"{path}.{field}", value, why)
    if parent.namespace:
        why = names.path_segment_faults(parent.namespace)
        faults += invalid_all(f"{path}.namespace", parent.namespace, why)
    return faults


def update_ip_address(new: IPAddress, old: IPAddress) -> Faults:
    faults = meta.metadata_update(new, old)
    return faults + require_unchanged("spec.parentRef", new.spec.parent_ref, old.spec.parent_ref)
