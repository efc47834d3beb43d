"""PolicyRules: what they allow, and how messages show them.

Source: pkg/apis/rbac/v1/evaluation_helpers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.rbac_v1 import PolicyRule
from kcm.apiserver.auth.attributes import Attributes, quote_list

ALL = "*"


class PreparedRule:
    """A PolicyRule with its lists turned into sets, for many checks."""

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
        """Reports whether this rule alone allows a request with these attributes."""
        if asked.verb not in self._verbs and ALL not in self._verbs:
            return False
        if asked.path:
            return asked.path in self._urls or asked.path.startswith(self._prefixes)
        if asked.group not in self._groups and ALL not in self._groups:
            return False
        if self._names and asked.name not in self._names:
            return False
        resources = self._resources
        if asked.full_resource in resources or ALL in resources:
            return True
        return bool(asked.subresource) and f"*/{asked.subresource}" in resources

    def covers_verb(self, verb: str) -> bool:
        """Reports whether the rule allows this verb. The methods below check other attributes."""
        return ALL in self._verbs or verb in self._verbs

    def covers_group(self, group: str) -> bool:
        return ALL in self._groups or group in self._groups

    def covers_resource(self, resource: str) -> bool:
        if ALL in self._resources or resource in self._resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self._resources

    def covers_name(self, name: str) -> bool:
        """Reports whether the rule covers an object of this name. "" stands for all names."""
        return not self._names or (bool(name) and name in self._names)

    def covers_url(self, url: str) -> bool:
        return url in self._urls or url.startswith(self._prefixes)


def merge_rules(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Returns the rules, with those merged that differ only in their verbs."""
    by_rest: dict[tuple[tuple[str, ...], ...], dict[str, None]] = {}
    for rule in rules:
        key = tuple(
            tuple(part or ())
            for part in (rule.api_groups, rule.resources, rule.resource_names,
                         rule.non_resource_urls)
        )  # fmt: skip
        by_rest.setdefault(key, {}).update(dict.fromkeys(rule.verbs))
    return [
        PolicyRule(
            verbs=list(verbs),
            api_groups=list(key[0]) or None,
            resources=list(key[1]) or None,
            resource_names=list(key[2]) or None,
            non_resource_urls=list(key[3]) or None,
        )
        for key, verbs in by_rest.items()
    ]


def format_rule(rule: PolicyRule) -> str:
    """Returns a rule as text, as upstream's messages show it."""
    parts = {
        "APIGroups": rule.api_groups, "Resources": rule.resources,
        "NonResourceURLs": rule.non_resource_urls, "ResourceNames": rule.resource_names,
        "Verbs": rule.verbs,
    }  # fmt: skip
    return (
        "{" + ", ".join(f"{name}:{quote_list(part)}" for name, part in parts.items() if part) + "}"
    )
