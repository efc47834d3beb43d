"""Node selectors and node affinity, by which pods choose nodes by labels and names.

Source: staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kcm.api.core_v1.affinity import Affinity, NodeSelectorRequirement, NodeSelectorTerm

Labels = Mapping[str, str]
_NAME = "metadata.name"


def _holds(requirement: NodeSelectorRequirement, labels: Labels) -> bool:
    value = labels.get(requirement.key)
    values = requirement.values or ()
    match requirement.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _compare_numbers(value, values) > 0
        case "Lt":
            return _compare_numbers(value, values) < 0
    return False


def _compare_numbers(value: str | None, values: Sequence[str]) -> int:
    """Returns whether the label's number is below (-1), at (0) or above (1) the bound.

    Returns 0 if one of them is not a number.
    """
    try:
        number, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return 0
    return (number > bound) - (number < bound)


@dataclass(frozen=True)
class Term:
    """A node selector term. Without requirements it matches no node."""

    expressions: tuple[NodeSelectorRequirement, ...]
    fields: tuple[NodeSelectorRequirement, ...]
    weight: int = 0

    @classmethod
    def of(cls, term: NodeSelectorTerm, weight: int = 0) -> Term:
        return cls(tuple(term.match_expressions or ()), tuple(term.match_fields or ()), weight)

    def matches(self, labels: Labels, name: str) -> bool:
        if not self.expressions and not self.fields:
            return False
        return all(_holds(r, labels) for r in self.expressions) and all(
            _holds(r, {_NAME: name}) for r in self.fields
        )

    def names(self) -> frozenset[str] | None:
        """Returns the names of the only nodes that can match, None if the term does not restrict
        names.
        """
        named = [
            frozenset(r.values or ()) for r in self.fields if r.key == _NAME and r.operator == "In"
        ]
        return frozenset.intersection(*named) if named else None


@dataclass(frozen=True)
class NodeRule:
    """The node selector and the node affinity of a pod."""

    selector: Labels
    required: tuple[Term, ...] | None  # None without required affinity
    preferred: tuple[Term, ...]

    @classmethod
    def of(cls, selector: Labels | None, affinity: Affinity | None) -> NodeRule:
        of_nodes = affinity.node_affinity if affinity is not None else None
        if of_nodes is None:
            return cls(selector or {}, None, ())
        required = of_nodes.required_during_scheduling_ignored_during_execution
        preferred = of_nodes.preferred_during_scheduling_ignored_during_execution or ()
        terms = None if required is None else tuple(map(Term.of, required.node_selector_terms))
        preferences = tuple(Term.of(one.preference, one.weight) for one in preferred)
        return cls(selector or {}, terms, preferences)

    @property
    def names(self) -> frozenset[str] | None:
        """Returns the names of the only nodes that can match, None if names are not restricted."""
        if not self.required:
            return None
        named: set[str] = set()
        for term in self.required:
            names = term.names()
            if names is None:
                return None
            named |= names
        return frozenset(named)

    def matches(self, labels: Labels, name: str) -> bool:
        for key, value in self.selector.items():
            if labels.get(key) != value:
                return False
        return self.required is None or any(term.matches(labels, name) for term in self.required)

    def score(self, labels: Labels, name: str) -> int:
        """Returns the sum of the weights of the preferred terms that match."""
        return sum(term.weight for term in self.preferred if term.matches(labels, name))
