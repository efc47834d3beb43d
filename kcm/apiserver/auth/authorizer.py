"""Authorizers, which decide whether a user may send a request.

Source: staging/src/k8s.io/apiserver/pkg/authorization, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kcm import errors
from kcm.api.rbac_v1 import PolicyRule, RoleRef
from kcm.apiserver.auth.attributes import ANYBODY, MASTERS, Attributes, User, forbidden, quote_list

NODE, ROLES, ALWAYS_ALLOW, ALWAYS_DENY = MODES = ("Node", "RBAC", "AlwaysAllow", "AlwaysDeny")
DEFAULT_MODES = (NODE, ROLES)


@dataclass(frozen=True)
class AuthorizerDecision:
    """A decision whether a request is allowed, and the reason."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True)
class UserRules:
    """All rules that apply to a user in a namespace.

    `errors` says which roles could not be read.
    """

    rules: Sequence[PreparedRule]
    errors: Sequence[str] = ()


class Authorizer(Protocol):
    """Decides which requests users may send."""

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        """Returns the decision about a request.

        Raises StoreUnavailable while roles are not loaded.
        """
        ...

    def rights(self, user: User, namespace: str) -> UserRules:
        """Returns the rules that apply to a user in a namespace, cluster-wide ones included.

        Raises StoreUnavailable.
        """
        ...

    def role_rules(self, reference: RoleRef, namespace: str) -> Sequence[PolicyRule]:
        """Returns the rules of a role. Raises NotFound and StoreUnavailable."""
        ...

    def catch_up(self) -> None:
        """Waits until all roles and bindings that were written before this call are known.

        Raises StoreUnavailable.
        """
        ...


class AlwaysAllow:
    """Allows every request of every user."""

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        return AuthorizerDecision(True)

    def rights(self, user: User, namespace: str) -> UserRules:
        everything = PolicyRule(verbs=[ALL], api_groups=[ALL], resources=[ALL])
        return UserRules(
            [
                PreparedRule(everything),
                PreparedRule(PolicyRule(verbs=[ALL], non_resource_urls=[ALL])),
            ]
        )

    def role_rules(self, reference: RoleRef, namespace: str) -> Sequence[PolicyRule]:
        return ()

    def catch_up(self) -> None:
        return


class AlwaysDeny(AlwaysAllow):
    """Allows no request."""

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        return AuthorizerDecision(False)

    def rights(self, user: User, namespace: str) -> UserRules:
        return UserRules(())


class Masters:
    """Allows every request of system:masters. Another authorizer decides about all other users."""

    def __init__(self, behind: Authorizer) -> None:
        self._behind = behind
        self.rights = behind.rights
        self.role_rules = behind.role_rules
        self.catch_up = behind.catch_up

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        if MASTERS in user.groups:
            return AuthorizerDecision(True)
        return self._behind.authorize(user, asked)


class Union:
    """Asks several authorizers in order. The first that allows a request decides."""

    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self._authorizers = tuple(authorizers)

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        reasons = []
        for authorizer in self._authorizers:
            decision = authorizer.authorize(user, asked)
            if decision.allowed:
                return decision
            reasons.append(decision.reason)
        return AuthorizerDecision(False, "\n".join(filter(None, reasons)))

    def rights(self, user: User, namespace: str) -> UserRules:
        own = [authorizer.rights(user, namespace) for authorizer in self._authorizers]
        return UserRules(
            [rule for one in own for rule in one.rules],
            [error for one in own for error in one.errors],
        )

    def role_rules(self, reference: RoleRef, namespace: str) -> Sequence[PolicyRule]:
        for authorizer in self._authorizers[:-1]:
            try:
                return authorizer.role_rules(reference, namespace)
            except errors.NotFound:
                continue
        return self._authorizers[-1].role_rules(reference, namespace)

    def catch_up(self) -> None:
        for authorizer in self._authorizers:
            authorizer.catch_up()


def parse_modes(text: str) -> tuple[str, ...]:
    """Returns the modes of --authorization-mode. Raises ConfigurationError."""
    modes = tuple(part.strip() for part in text.split(",") if part.strip())
    for mode in modes:
        if mode not in MODES:
            raise errors.ConfigurationError(
                f"--authorization-mode: {mode!r} is not one of {', '.join(MODES)}"
            )
    if not modes or len(set(modes)) != len(modes):
        raise errors.ConfigurationError(
            "--authorization-mode: name at least one mode, and each only once"
        )
    return modes


@dataclass(frozen=True)
class Caller:
    """The user of a request, for handlers that need further permissions than the request's verb."""

    user: User
    authorizer: Authorizer

    def may(self, asked: Attributes) -> bool:
        """Reports whether the user may send a request with these attributes.

        Raises StoreUnavailable.
        """
        return self.authorizer.authorize(self.user, asked).allowed

    def require(self, asked: Attributes) -> None:
        """Raises Forbidden unless the user may send a request with these attributes.

        Raises StoreUnavailable, too.
        """
        decision = self.authorizer.authorize(self.user, asked)
        if not decision.allowed:
            raise forbidden(self.user.name, asked, decision.reason)


NOBODY = Caller(ANYBODY, AlwaysDeny())  # for calls without a request


# --- PolicyRules: what they allow, and how messages show them.
#
# Source: pkg/apis/rbac/v1/evaluation_helpers.go, Kubernetes 1.33.


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
