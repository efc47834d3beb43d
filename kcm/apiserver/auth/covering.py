"""Decides whether some RBAC rules cover others.

Upstream breaks a rule into its smallest parts, one for each group, resource, verb and name, and
searches the rules that the user has for each part: a rule of 3 KB has a million parts. Here groups
that the same rules cover are one class, and so are resources, verbs and names. Only the
combinations of classes are checked. The result is upstream's.

Source: staging/src/k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go, Kubernetes
1.33.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from kcm.api.rbac_v1 import PolicyRule
from kcm.apiserver.auth.authorizer import PreparedRule

MOST_LISTED = 100  # the most parts that are listed
_MOST_STEPS = 2_000_000  # the most elements and combinations that one comparison checks

# By the rules that cover them (one bit each): the elements of a dimension, such as verbs.
_Classes = dict[int, list[str]]


class TooManyRulesError(Exception):
    """The comparison would need more than _MOST_STEPS steps."""


def find_uncovered(wanted: Iterable[PolicyRule], held: Iterable[PreparedRule]) -> list[PolicyRule]:
    """Returns up to MOST_LISTED parts of `wanted` that no rule of `held` covers.

    A part has one verb and either one group, resource and name, or one URL. Raises
    TooManyRulesError.
    """
    check = _Check(list(held))
    parts = itertools.chain.from_iterable(check.missing(rule) for rule in wanted)
    return list(itertools.islice(parts, MOST_LISTED))


class _Check:
    """Checks rules against the rules that a user has, within a limit of steps."""

    def __init__(self, held: Sequence[PreparedRule]) -> None:
        self._held = held
        self._left = _MOST_STEPS

    def missing(self, rule: PolicyRule) -> Iterator[PolicyRule]:
        """Yields the parts of a rule that no rule of the user covers."""
        verbs = self._classes(rule.verbs, PreparedRule.covers_verb)
        if rule.api_groups and rule.resources and rule.verbs:
            yield from self._find_missing_resources(rule, verbs)
        if rule.non_resource_urls and rule.verbs:
            urls = self._classes(rule.non_resource_urls, PreparedRule.covers_url)
            for url, verb in self._uncovered(urls, verbs):
                yield PolicyRule(non_resource_urls=[url], verbs=[verb])

    def _find_missing_resources(self, rule: PolicyRule, verbs: _Classes) -> Iterator[PolicyRule]:
        groups = self._classes(rule.api_groups or (), PreparedRule.covers_group)
        resources = self._classes(rule.resources or (), PreparedRule.covers_resource)
        names = self._classes(rule.resource_names or ("",), PreparedRule.covers_name)
        for group, resource, verb, name in self._uncovered(groups, resources, verbs, names):
            part = PolicyRule(api_groups=[group], resources=[resource], verbs=[verb])
            yield part.replace(resource_names=[name]) if rule.resource_names else part

    def _classes(
        self, elements: Sequence[str], covers: Callable[[PreparedRule, str], bool]
    ) -> _Classes:
        """Returns the distinct elements, grouped by which of the user's rules cover them."""
        by_cover: _Classes = {}
        self._count_steps(len(elements) * (len(self._held) + 1))
        for element in dict.fromkeys(elements):
            by = sum(covers(rule, element) << bit for bit, rule in enumerate(self._held))
            by_cover.setdefault(by, []).append(element)
        return by_cover

    def _uncovered(self, *dimensions: _Classes) -> Iterator[tuple[str, ...]]:
        """Yields the combinations, one element of each dimension, that no single rule covers."""
        self._count_steps(math.prod(len(classes) for classes in dimensions))
        for combination in itertools.product(*(classes.items() for classes in dimensions)):
            by = -1
            for covering, _ in combination:
                by &= covering
            if not by:
                yield from itertools.product(*(elements for _, elements in combination))

    def _count_steps(self, number: int) -> None:
        """Counts steps of the comparison. Raises TooManyRulesError beyond _MOST_STEPS."""
        self._left -= number
        if self._left < 0:
            raise TooManyRulesError
