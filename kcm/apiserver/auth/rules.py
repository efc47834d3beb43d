"""PolicyRules: what they allow, and whether some rules cover others.

Source: pkg/apis/rbac/v1/evaluation_helpers.go and
staging/src/k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go, Kubernetes 1.33.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from kcm.api.rbac_v1 import PolicyRule
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.auth.users import quoted

ALL = "*"


class Rule:
    """A PolicyRule made ready to be asked often."""

    __slots__ = ("_groups", "_names", "_prefixes", "_resources", "_urls", "_verbs",
                 "policy")  # fmt: skip

    def __init__(self, policy: PolicyRule) -> None:
        self.policy = policy
        self._verbs = frozenset(policy.verbs)
        self._groups = frozenset(policy.api_groups or ())
        self._resources = frozenset(policy.resources or ())
        self._names = frozenset(policy.resource_names or ())
        self._urls = frozenset(policy.non_resource_urls or ())
        self._prefixes = tuple(url.rstrip(ALL) for url in self._urls if url.endswith(ALL))

    def allows(self, asked: Attributes) -> bool:
        """Whether this rule alone allows it."""
        if asked.verb not in self._verbs and ALL not in self._verbs:
            return False
        if asked.path:
            return asked.path in self._urls or asked.path.startswith(self._prefixes)
        if asked.group not in self._groups and ALL not in self._groups:
            return False
        if self._names and asked.name not in self._names:
            return False
        found = self._resources
        if asked.full_resource in found or ALL in found:
            return True
        return bool(asked.subresource) and f"*/{asked.subresource}" in found

    def covers(self, part: PolicyRule) -> bool:
        """Whether it allows all that a rule of one verb and one resource, or URL, does."""
        if ALL not in self._verbs and not self._verbs.issuperset(part.verbs):
            return False
        if part.non_resource_urls:
            return all(
                url in self._urls or url.startswith(self._prefixes)
                for url in part.non_resource_urls
            )
        if ALL not in self._groups and not self._groups.issuperset(part.api_groups or ()):
            return False
        named = part.resource_names or ()
        if self._names and not (named and self._names.issuperset(named)):
            return False
        return all(self._covers_resource(resource) for resource in part.resources or ())

    def _covers_resource(self, resource: str) -> bool:
        if ALL in self._resources or resource in self._resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self._resources


def uncovered(wanted: Iterable[PolicyRule], held: Iterable[Rule]) -> list[PolicyRule]:
    """What of `wanted` no rule of `held` covers, in its smallest parts."""
    having = list(held)
    parts = itertools.chain.from_iterable(_parts(rule) for rule in wanted)
    return [part for part in parts if not any(rule.covers(part) for rule in having)]


def _parts(rule: PolicyRule) -> Iterator[PolicyRule]:
    resources = itertools.product(rule.api_groups or (), rule.resources or (), rule.verbs)
    for group, resource, verb in resources:
        part = PolicyRule(api_groups=[group], resources=[resource], verbs=[verb])
        if not rule.resource_names:
            yield part
        for name in rule.resource_names or ():
            yield part.replace(resource_names=[name])
    for url, verb in itertools.product(rule.non_resource_urls or (), rule.verbs):
        yield PolicyRule(non_resource_urls=[url], verbs=[verb])


def merged(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Rules that differ in their verbs alone as one rule each."""
    found: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for rule in rules:
        key = tuple(
            tuple(part or ())
            for part in (rule.api_groups, rule.resources, rule.resource_names,
                         rule.non_resource_urls)
        )  # fmt: skip
        verbs = found.setdefault(key, [])
        verbs += [verb for verb in rule.verbs if verb not in verbs]
    return [
        PolicyRule(
            verbs=verbs,
            api_groups=list(key[0]) or None,
            resources=list(key[1]) or None,
            resource_names=list(key[2]) or None,
            non_resource_urls=list(key[3]) or None,
        )
        for key, verbs in found.items()
    ]


def shown(rule: PolicyRule) -> str:
    """A rule as upstream's messages print it."""
    parts = {
        "APIGroups": rule.api_groups, "Resources": rule.resources,
        "NonResourceURLs": rule.non_resource_urls, "ResourceNames": rule.resource_names,
        "Verbs": rule.verbs,
    }  # fmt: skip
    return "{" + ", ".join(f"{name}:{quoted(part)}" for name, part in parts.items() if part) + "}"
