"""Validation of the IP addresses and IP families of Services.

Source: pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kcm.api.core_v1 import Service, ServiceSpec
from kcm.apimachinery.field_errors import Faults, duplicate, forbidden, invalid, not_supported
from kcm.errors import FieldError
from kcm.kinds.validation import addresses

_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_RANGES_ANNOTATION = "service.beta.kubernetes.io/load-balancer-source-ranges"
_NOT_EXTERNAL = "may not be set for ExternalName services"


def kept_addresses(new: ServiceSpec, old: ServiceSpec) -> Faults:
    """Checks that the primary address and family stay, and that a secondary one is given up only
    with the policy SingleStack.
    """
    headless = [spec.cluster_ips == ["None"] for spec in (new, old)]
    if "ExternalName" in (new.type, old.type) or all(headless):
        return []
    single = new.ip_family_policy == "SingleStack"
    ips, old_ips = new.cluster_ips or [], old.cluster_ips or []
    faults = _kept("clusterIPs", ips, old_ips, single=single)
    if any(headless):
        return faults
    return faults + _kept("ipFamilies", new.ip_families or [], old.ip_families or [], single=single)


def _kept(field: str, new: Sequence[str], old: Sequence[str], *, single: bool) -> Faults:
    path, faults = f"spec.{field}", list[FieldError]()
    name = "ipFamily" if field == "ipFamilies" else "clusterIP"
    if old and not new:
        return [invalid(f"{path}[0]", list(new), f"primary {name} can not be unset")]
    compared = len(new) if len(new) == len(old) else 1
    for index, (value, was) in enumerate(zip(new[:compared], old, strict=False)):
        if value != was:
            where = f"{path}[{index if name == 'clusterIP' else 0}]"
            faults.append(invalid(where, list(new), "may not change once set"))
    if len(old) > len(new) == 1 and not single:
        detail = f"must be set to 'SingleStack' when releasing the secondary {name}"
        faults.append(invalid("spec.ipFamilyPolicy", None, detail))
    return faults


def cluster_ips(spec: ServiceSpec, stored: ServiceSpec) -> Faults:
    """Checks that clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy agree."""
    if spec.type == "ExternalName":
        given = {"ipFamilies": spec.ip_families, "ipFamilyPolicy": spec.ip_family_policy}
        return [
            forbidden(f"spec.{field}", _NOT_EXTERNAL) for field, value in given.items() if value
        ]
    return [*_primary(spec), *_families(spec), *_addresses(spec, stored.cluster_ips or ())]


def _primary(spec: ServiceSpec) -> Faults:
    path, cluster_ips = "spec.clusterIPs", spec.cluster_ips or []
    if not spec.cluster_ip:
        detail = "must be empty when `clusterIP` is not specified"
        return [invalid(path, cluster_ips, detail)] if cluster_ips else []
    if cluster_ips and cluster_ips[0] != spec.cluster_ip:
        return [invalid(path, cluster_ips, "first value must match `clusterIP`")]
    return []


def _families(spec: ServiceSpec) -> Faults:
    faults: Faults = []
    families = spec.ip_families or []
    for index, family in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        if family not in _FAMILIES:
            faults.append(not_supported(path, family, _FAMILIES))
        if family in families[:index]:
            faults.append(duplicate(path, family))
    policy = spec.ip_family_policy
    if policy is not None and policy not in _FAMILY_POLICIES:
        faults.append(not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES))
    return faults


def _addresses(spec: ServiceSpec, stored: Collection[str]) -> Faults:
    path, cluster_ips = "spec.clusterIPs", spec.cluster_ips or []
    if cluster_ips[:1] == ["None"]:
        detail = "'None' must be the first and only value"
        return [invalid(path, cluster_ips, detail)] if len(cluster_ips) > 1 else []
    faults = [
        fault
        for index, ip in enumerate(cluster_ips)
        for fault in addresses.address(ip, f"{path}[{index}]", stored)
    ]
    if len(cluster_ips) > 2:
        faults.append(invalid(path, cluster_ips, "may only hold up to 2 values"))
    if faults:
        return faults
    return _dual(cluster_ips, path) + _of_their_families(cluster_ips, spec.ip_families or [], path)


def _family_of(ip: str) -> str:
    return "IPv6" if ":" in ip else "IPv4"


def _dual(cluster_ips: list[str], path: str) -> Faults:
    if len({_family_of(ip) for ip in cluster_ips}) == len(cluster_ips):
        return []
    return [invalid(path, cluster_ips, "may specify no more than one IP for each IP family")]


def _of_their_families(cluster_ips: list[str], families: list[str], path: str) -> Faults:
    return [
        invalid(
            f"{path}[{index}]",
            ip,
            f"expected an {family} value as indicated by `ipFamilies[{index}]`",
        )
        for index, (ip, family) in enumerate(zip(cluster_ips, families, strict=False))
        if family in _FAMILIES and _family_of(ip) != family
    ]


def external_ips(spec: ServiceSpec, stored: ServiceSpec) -> Faults:
    faults: Faults = []
    before = frozenset(stored.external_ips or ())
    for index, ip in enumerate(spec.external_ips or ()):
        path = f"spec.externalIPs[{index}]"
        faults += addresses.address(ip, path, before) or addresses.not_special(ip, path)
    return faults


def source_ranges(service: Service, old: Service | None) -> Faults:
    """Checks the ranges of clients of a load balancer, in the field or else in the annotation."""
    spec, annotation = service.spec, service.annotations.get(_RANGES_ANNOTATION)
    if spec.load_balancer_source_ranges:
        path = "spec.LoadBalancerSourceRanges"  # as in upstream's messages
        stored = {text.strip() for text in (old and old.spec.load_balancer_source_ranges) or ()}
        return _not_for_type(spec, path) + [
            fault
            for index, text in enumerate(spec.load_balancer_source_ranges)
            for fault in addresses.cidr(text.strip(), f"{path}[{index}]", stored)
        ]
    if annotation is None:
        return []
    changed = old is None or old.annotations.get(_RANGES_ANNOTATION) != annotation
    texts = annotation.split(",") if changed and annotation.strip() else []
    path = f"metadata.annotations[{_RANGES_ANNOTATION}]"
    return _not_for_type(spec, path) + [
        fault for text in texts for fault in addresses.cidr(text.strip(), path)
    ]


def _not_for_type(spec: ServiceSpec, path: str) -> Faults:
    if spec.type == "LoadBalancer":
        return []
    return [forbidden(path, "may only be used when `type` is 'LoadBalancer'")]
