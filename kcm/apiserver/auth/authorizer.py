"""Authorizers, which decide whether a user may send a request.

Source: staging/src/k8s.io/apiserver/pkg/authorization, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kcm import errors
from kcm.api.rbac_v1 import PolicyRule, RoleRef
from kcm.apiserver.auth.attributes import ANYBODY, MASTERS, Attributes, User, forbidden
from kcm.apiserver.auth.rules import ALL, PreparedRule

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
