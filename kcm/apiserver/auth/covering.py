"""Whether some rules cover others.

Upstream breaks a rule into its smallest parts, one for each group, resource, verb and name,
and looks for each among the rules that are held: a rule of 3 KB has a million parts. Here,
groups that the same of the held rules cover are one, and so with resources, verbs and names;
only what these classes multiply to is looked at. The outcome is upstream's.

Source: staging/src/k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from kcm.api.rbac_v1 import PolicyRule
from kcm.apiserver.auth.rules import Rule

MOST_TOLD = 100  # parts that are listed
_MOST_LOOKS = 2_000_000  # at an element or a combination, in one check

# The elements of one dimension that are covered alike: by which rules (a bit each), and which.
_Classes = dict[int, list[str]]


class TooManyRulesError(Exception):
    """Comparing the rules would take too much."""


def uncovered(wanted: Iterable[PolicyRule], held: Iterable[Rule]) -> list[PolicyRule]:
    """What of `wanted` no rule of `held` covers, in its smallest parts: the first of them.

    Raises TooManyRulesError.
    """
    check = _Check(list(held))
    parts = itertools.chain.from_iterable(check.missing(rule) for rule in wanted)
    return list(itertools.islice(parts, MOST_TOLD))


class _Check:
    """The rules that are held, and how much may still be looked at."""

    def __init__(self, held: Sequence[Rule]) -> None:
        self._held = held
        self._left = _MOST_LOOKS

    def missing(self, rule: PolicyRule) -> Iterator[PolicyRule]:
        """The parts of a rule that are not covered."""
        verbs = self._classes(rule.verbs, Rule.covers_verb)
        if rule.api_groups and rule.resources and rule.verbs:
            yield from self._missing_resources(rule, verbs)
        if rule.non_resource_urls and rule.verbs:
            urls = self._classes(rule.non_resource_urls, Rule.covers_url)
            for url, verb in self._open(urls, verbs):
                yield PolicyRule(non_resource_urls=[url], verbs=[verb])

    def _missing_resources(self, rule: PolicyRule, verbs: _Classes) -> Iterator[PolicyRule]:
        groups = self._classes(rule.api_groups or (), Rule.covers_group)
        resources = self._classes(rule.resources or (), Rule.covers_resource)
        names = self._classes(rule.resource_names or ("",), Rule.covers_name)
        for group, resource, verb, name in self._open(groups, resources, verbs, names):
            part = PolicyRule(api_groups=[group], resources=[resource], verbs=[verb])
            yield part.replace(resource_names=[name]) if rule.resource_names else part

    def _classes(self, elements: Sequence[str], covers: Callable[[Rule, str], bool]) -> _Classes:
        found: _Classes = {}
        self._look(len(elements) * (len(self._held) + 1))
        for element in dict.fromkeys(elements):
            by = sum(covers(rule, element) << bit for bit, rule in enumerate(self._held))
            found.setdefault(by, []).append(element)
        return found

    def _open(self, *dimensions: _Classes) -> Iterator[tuple[str, ...]]:
        """The combinations that no one rule covers."""
        self._look(math.prod(len(classes) for classes in dimensions))
        for combination in itertools.product(*(classes.items() for classes in dimensions)):
            by = -1
            for covering, _ in combination:
                by &= covering
            if not by:
                yield from itertools.product(*(elements for _, elements in combination))

    def _look(self, times: int) -> None:
        self._left -= times
        if self._left < 0:
            raise TooManyRulesError
