"""What pods want of other pods: affinity terms, compiled.

Source: pkg/scheduler/framework/types.go (AffinityTerm, GetPodAffinityTerms), and for
matchLabelKeys pkg/registry/core/pod/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kcm import errors
from kcm.api.labels import Requirement, Selector
from kcm.api.meta_v1 import LabelSelector

Labels = Mapping[str, str]
NamespaceLabels = Callable[[str], Labels]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def selector_of(raw: Any, more: Iterable[Requirement] = ()) -> Selector:
    """A label selector from the wire, and what else must hold; a wrong one matches nothing."""
    if raw is None:
        return Selector.nothing()
    try:
        found = Selector.from_label_selector(LabelSelector.model_validate(raw))
    except (errors.BadRequest, ValueError):
        return Selector.nothing()
    more = tuple(more)
    return Selector((*found.requirements, *more)) if more else found


@dataclass(frozen=True, eq=False, slots=True)
class AffinityTerm:
    """Pods that are looked for, and the label whose value makes nodes one place."""

    namespaces: frozenset[str]
    namespace_selector: Selector | None
    selector: Selector
    topology_key: str
    weight: int = 0

    def matches(self, namespace: str, labels: Labels, namespace_labels: NamespaceLabels) -> bool:
        """Whether the term means a pod of this namespace with these labels."""
        if namespace not in self.namespaces:
            chosen = self.namespace_selector
            if chosen is None or not chosen.matches(namespace_labels(namespace)):
                return False
        return self.selector.matches(labels)

    @property
    def anywhere(self) -> bool:
        """Whether namespaces are chosen by their labels."""
        return self.namespace_selector is not None


@dataclass(frozen=True, eq=False, slots=True)
class PodTerms:
    """All terms of one pod."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()  # weights below 0 for anti-affinity

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.preferred)


NO_TERMS = PodTerms()


def terms_of(affinity: Mapping[str, Any] | None, namespace: str, labels: Labels) -> PodTerms:
    """The terms of a pod's spec.affinity."""
    near = (affinity or {}).get("podAffinity") or {}
    far = (affinity or {}).get("podAntiAffinity") or {}
    if not near and not far:
        return NO_TERMS

    def weighted(raw: Mapping[str, Any], sign: int) -> Iterable[AffinityTerm]:
        for wish in raw.get(_PREFERRED) or ():
            term = wish.get("podAffinityTerm") or {}
            yield _term(term, namespace, labels, sign * wish.get("weight", 0))

    return PodTerms(
        tuple(_term(raw, namespace, labels) for raw in near.get(_REQUIRED) or ()),
        tuple(_term(raw, namespace, labels) for raw in far.get(_REQUIRED) or ()),
        (*weighted(near, 1), *weighted(far, -1)),
    )


def _term(raw: Mapping[str, Any], namespace: str, labels: Labels, weight: int = 0) -> AffinityTerm:
    names = frozenset(raw.get("namespaces") or ())
    chosen = raw.get("namespaceSelector")
    if not names and chosen is None:
        names = frozenset({namespace})
    return AffinityTerm(
        names,
        None if chosen is None else selector_of(chosen),
        selector_of(raw.get("labelSelector"), _key_requirements(raw, labels)),
        raw.get("topologyKey", ""),
        weight,
    )


def _key_requirements(raw: Mapping[str, Any], labels: Labels) -> Iterable[Requirement]:
    """matchLabelKeys and mismatchLabelKeys, with the values of the pod's own labels."""
    for field, operator in (("matchLabelKeys", "in"), ("mismatchLabelKeys", "notin")):
        for key in raw.get(field) or ():
            if key in labels:
                yield Requirement(key, operator, (labels[key],))
