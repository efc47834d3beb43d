"""The affinity terms of pods, compiled.

The API server has added the requirements of their matchLabelKeys to the selectors.

Source: pkg/scheduler/framework/types.go (AffinityTerm, GetPodAffinityTerms), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kcm import errors
from kcm.api.core_v1.affinity import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    WeightedPodAffinityTerm,
)
from kcm.apimachinery.labels import Requirement, Selector
from kcm.apimachinery.meta_v1 import LabelSelector

Labels = Mapping[str, str]
NamespaceLabels = Callable[[str], Labels]


def selector_of(wanted: LabelSelector | None, more: Iterable[Requirement] = ()) -> Selector:
    """Returns the compiled selector, with further requirements.

    An absent selector matches nothing. Neither does an invalid one, which only objects stored
    without validation can have.
    """
    if wanted is None:
        return Selector.nothing()
    try:
        selector = Selector.from_label_selector(wanted)
    except errors.BadRequest:
        return Selector.nothing()
    more = tuple(more)
    return Selector((*selector.requirements, *more)) if more else selector


@dataclass(frozen=True, eq=False, slots=True)
class AffinityTerm:
    """The pods that a term selects, and the label whose values are the topology domains."""

    namespaces: frozenset[str]
    namespace_selector: Selector | None
    selector: Selector
    topology_key: str
    weight: int = 0

    def matches(self, namespace: str, labels: Labels, namespace_labels: NamespaceLabels) -> bool:
        """Reports whether the term selects a pod of this namespace with these labels."""
        if namespace not in self.namespaces:
            chosen = self.namespace_selector
            if chosen is None or not chosen.matches(namespace_labels(namespace)):
                return False
        return self.selector.matches(labels)

    @property
    def anywhere(self) -> bool:
        """Whether the term selects namespaces by their labels."""
        return self.namespace_selector is not None


@dataclass(frozen=True, eq=False, slots=True)
class PodTerms:
    """All affinity and anti-affinity terms of one pod."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()  # negative weights are those of anti-affinity

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.preferred)


NO_TERMS = PodTerms()


def terms_of(affinity: Affinity, namespace: str) -> PodTerms:
    """Returns the terms of the spec.affinity of a pod in a namespace."""
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    if near is None and far is None:
        return NO_TERMS

    def required(side: PodAffinity | PodAntiAffinity | None) -> tuple[AffinityTerm, ...]:
        terms = side and side.required_during_scheduling_ignored_during_execution
        return tuple(_term(term, namespace) for term in terms or ())

    def preferred(side: PodAffinity | PodAntiAffinity | None, sign: int) -> Iterable[AffinityTerm]:
        wishes: Iterable[WeightedPodAffinityTerm] = (
            side and side.preferred_during_scheduling_ignored_during_execution
        ) or ()
        for wish in wishes:
            yield _term(wish.pod_affinity_term, namespace, sign * wish.weight)

    return PodTerms(required(near), required(far), (*preferred(near, 1), *preferred(far, -1)))


def _term(term: PodAffinityTerm, namespace: str, weight: int = 0) -> AffinityTerm:
    names = frozenset(term.namespaces or ())
    chosen = term.namespace_selector
    if not names and chosen is None:
        names = frozenset({namespace})
    return AffinityTerm(
        names,
        None if chosen is None else selector_of(chosen),
        selector_of(term.label_selector),
        term.topology_key,
        weight,
    )
