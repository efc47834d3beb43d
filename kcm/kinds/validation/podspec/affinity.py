"""Validation of node affinity, pod affinity and anti-affinity.

Source: validateAffinity and the functions near it in pkg/apis/core/validation/validation.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kcm.api.core_v1.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
)
from kcm.api.core_v1.persistent_volumes import VolumeNodeAffinity
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import Faults, forbidden, invalid, invalid_all, required
from kcm.apimachinery.meta_v1 import LabelSelector
from kcm.errors import FieldError
from kcm.kinds.validation import meta

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT_RANGE = "must be in the range 1-100"
_NOT_AN_OPERATOR = "not a valid selector operator"
_VALUE = re.compile(r"\.nodeSelectorTerms\[\d+\]\.matchExpressions\[\d+\]\.values\[")


def affinity(wanted: Affinity | None, path: str) -> Faults:
    if wanted is None:
        return []
    faults: Faults = []
    if wanted.node_affinity is not None:
        faults += _of_nodes(wanted.node_affinity, f"{path}.nodeAffinity")
    for side, name in ((wanted.pod_affinity, "podAffinity"),
                       (wanted.pod_anti_affinity, "podAntiAffinity")):  # fmt: skip
        if side is not None:
            faults += _of_pods(side, f"{path}.{name}")
    return faults


def _of_nodes(node_affinity: NodeAffinity, path: str) -> Faults:
    faults: Faults = []
    wanted = node_affinity.required_during_scheduling_ignored_during_execution
    if wanted is not None:
        faults += node_selector(wanted, f"{path}.{_REQUIRED}")
    preferred = node_affinity.preferred_during_scheduling_ignored_during_execution or ()
    for index, weighted in enumerate(preferred):
        where = f"{path}.{_PREFERRED}[{index}]"
        faults += _weight(weighted.weight, f"{where}.weight")
        # As upstream, values that no label can have are allowed in preferred terms.
        faults += _node_term(weighted.preference, f"{where}.preference", check_values=False)
    return faults


def _weight(weight: int, path: str) -> Faults:
    return [] if 1 <= weight <= 100 else [invalid(path, weight, _WEIGHT_RANGE)]


def node_selector(selector: NodeSelector, path: str) -> Faults:
    where = f"{path}.nodeSelectorTerms"
    if not selector.node_selector_terms:
        return [required(where, "must have at least one node selector term")]
    faults: Faults = []
    for index, term in enumerate(selector.node_selector_terms):
        faults += _node_term(term, f"{where}[{index}]")
    return faults


def without_stored_values(faults: Faults, stored: NodeSelector | None) -> Faults:
    """Returns the faults without those of values that no label can have, if the stored object has
    some of them. Older versions allowed them.
    """
    if not faults or stored is None or not any(map(_is_of_value, node_selector(stored, ""))):
        return faults
    return [fault for fault in faults if not _is_of_value(fault)]


def _is_of_value(fault: FieldError) -> bool:
    return bool(_VALUE.search(fault.field))


def _node_term(term: NodeSelectorTerm, path: str, *, check_values: bool = True) -> Faults:
    faults: Faults = []
    for index, requirement in enumerate(term.match_expressions or ()):
        where = f"{path}.matchExpressions[{index}]"
        faults += _of_label(requirement, where, check_values=check_values)
    for index, requirement in enumerate(term.match_fields or ()):
        faults += _of_field(requirement, f"{path}.matchFields[{index}]")
    return faults


def _of_label(requirement: NodeSelectorRequirement, path: str, *, check_values: bool) -> Faults:
    values, where = requirement.values or [], f"{path}.values"
    faults: Faults = []
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                faults.append(required(where, detail))
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                faults.append(forbidden(where, detail))
        case "Gt" | "Lt":
            if len(values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                faults.append(required(where, detail))
        case other:
            faults.append(invalid(f"{path}.operator", other, _NOT_AN_OPERATOR))
    faults += metadata_checks.label_key(requirement.key, f"{path}.key")
    if check_values:
        for index, value in enumerate(values):
            faults += invalid_all(
                f"{where}[{index}]", value, metadata_checks.label_value_faults(value)
            )
    return faults


def _of_field(requirement: NodeSelectorRequirement, path: str) -> Faults:
    values = requirement.values or []
    faults: Faults = []
    if requirement.operator not in ("In", "NotIn"):
        faults.append(invalid(f"{path}.operator", requirement.operator, _NOT_AN_OPERATOR))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        faults.append(required(f"{path}.values", detail))
    if requirement.key != "metadata.name":
        detail = "not a valid field selector key"
        return [*faults, invalid(f"{path}.key", requirement.key, detail)]
    for index, value in enumerate(values):
        faults += invalid_all(f"{path}.values[{index}]", value, names.subdomain_faults(value))
    return faults


def _of_pods(side: PodAffinity | PodAntiAffinity, path: str) -> Faults:
    faults: Faults = []
    terms = side.required_during_scheduling_ignored_during_execution or ()
    for index, term in enumerate(terms):
        faults += _pod_term(term, f"{path}.{_REQUIRED}[{index}]")
    preferred = side.preferred_during_scheduling_ignored_during_execution or ()
    for index, weighted in enumerate(preferred):
        where = f"{path}.{_PREFERRED}[{index}]"
        faults += _weight(weighted.weight, f"{where}.weight")
        faults += _pod_term(weighted.pod_affinity_term, f"{where}.podAffinityTerm")
    return faults


def _pod_term(term: PodAffinityTerm, path: str) -> Faults:
    faults: Faults = []
    if term.label_selector is not None:
        faults += meta.label_selector(term.label_selector, f"{path}.labelSelector")
    if term.namespace_selector is not None:
        faults += meta.label_selector(term.namespace_selector, f"{path}.namespaceSelector")
    for name in term.namespaces or ():
        faults += invalid_all(f"{path}.namespace", name, names.label_faults(name))
    match, mismatch = term.match_label_keys or [], term.mismatch_label_keys or []
    faults += label_keys(match, mismatch, term.label_selector, path)
    if not term.topology_key:
        faults.append(required(f"{path}.topologyKey", "can not be empty"))
    return faults + metadata_checks.label_key(term.topology_key, f"{path}.topologyKey")


def label_keys(
    match: Sequence[str], mismatch: Sequence[str], selector: LabelSelector | None, path: str
) -> Faults:
    """Checks matchLabelKeys and mismatchLabelKeys.

    The selector of a new pod has a requirement for each key that the pod has as a label.
    """
    if not match and not mismatch:
        return []
    faults = _label_keys(match, selector, f"{path}.matchLabelKeys")
    faults += _label_keys(mismatch, selector, f"{path}.mismatchLabelKeys")
    places = {key: index for index, key in enumerate(match)}
    taken = set((selector.match_labels if selector else None) or ())
    for expression in (selector.match_expressions if selector else None) or ():
        if expression.key in places and expression.key in taken:
            detail = "exists in both matchLabelKeys and labelSelector"
            faults.append(invalid(f"{path}[{places[expression.key]}]", expression.key, detail))
        taken.add(expression.key)
    against = set(mismatch)
    for index, key in enumerate(match):
        if key in against:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            faults.append(invalid(f"{path}.matchLabelKeys[{index}]", key, detail))
    return faults


def _label_keys(keys: Iterable[str], selector: LabelSelector | None, path: str) -> Faults:
    keys = list(keys)
    if keys and selector is None:
        return [forbidden(path, "must not be specified when labelSelector is not set")]
    faults: Faults = []
    for index, key in enumerate(keys):
        faults += metadata_checks.label_key(key, f"{path}[{index}]")
    return faults


_NAMES_SINCE_BETA = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}  # of labels


def is_same_place(new: VolumeNodeAffinity | None, old: VolumeNodeAffinity | None) -> bool:
    """Reports whether a volume stays where it is. Labels may get the names that replaced theirs,
    and a volume that had no place may get one.
    """
    if old is None or new == old:
        return True
    if new is None or new.required is None or old.required is None:
        return False
    after, before = new.required.node_selector_terms, old.required.node_selector_terms
    return len(after) == len(before) and all(
        _is_renamed(term.match_expressions, was.match_expressions)
        and term.match_fields == was.match_fields
        for term, was in zip(after, before, strict=True)
    )


def _is_renamed(
    new: Sequence[NodeSelectorRequirement] | None, old: Sequence[NodeSelectorRequirement] | None
) -> bool:
    return len(new or ()) == len(old or ()) and all(
        one == was or one == was.replace(key=_NAMES_SINCE_BETA.get(was.key, was.key))
        for one, was in zip(new or (), old or (), strict=True)
    )
