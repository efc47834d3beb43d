"""Authorizers: whether a user may do something.

Source: staging/src/k8s.io/apiserver/pkg/authorization, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kcm.api.rbac_v1 import PolicyRule, RoleRef
from kcm.apiserver.auth.attributes import Attributes, forbidden
from kcm.apiserver.auth.rules import ALL, PreparedRule
from kcm.apiserver.auth.users import ANYBODY, MASTERS, User

MODES = ("RBAC", "AlwaysAllow")


@dataclass(frozen=True)
class AuthorizerDecision:
    """Whether something is allowed, and why."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True)
class UserRules:
    """All rules that hold for a user in a namespace. `errors` says what could not be read."""

    rules: Sequence[PreparedRule]
    errors: Sequence[str] = ()


class Authorizer(Protocol):
    """Decides what users may do."""

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        """Returns whether the user may. Raises StoreUnavailable before the roles are known."""
        ...

    def rights(self, user: User, namespace: str) -> UserRules:
        """Returns what the user may do in a namespace and in the cluster. Raises
        StoreUnavailable.
        """
        ...

    def role_rules(self, reference: RoleRef, namespace: str) -> Sequence[PolicyRule]:
        """Returns the rules of a role. Raises NotFound and StoreUnavailable."""
        ...

    def catch_up(self) -> None:
        """Waits until the roles that were written before this call are known. Raises
        StoreUnavailable.
        """
        ...


class AlwaysAllow:
    """Allows everything to everybody who gets in."""

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
    """Allows nothing to anybody."""

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        return AuthorizerDecision(False)

    def rights(self, user: User, namespace: str) -> UserRules:
        return UserRules(())


class Masters:
    """Allows everything to system:masters, and asks another authorizer about everybody else."""

    def __init__(self, behind: Authorizer) -> None:
        self._behind = behind
        self.rights = behind.rights
        self.role_rules = behind.role_rules
        self.catch_up = behind.catch_up

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        if MASTERS in user.groups:
            return AuthorizerDecision(True)
        return self._behind.authorize(user, asked)


@dataclass(frozen=True)
class Caller:
    """The user of one request, for handlers that must ask beyond the request's own verb."""

    user: User
    authorizer: Authorizer

    def may(self, asked: Attributes) -> bool:
        """Reports whether the user may. Raises StoreUnavailable."""
        return self.authorizer.authorize(self.user, asked).allowed

    def require(self, asked: Attributes) -> None:
        """Raises Forbidden unless the user may, and StoreUnavailable."""
        decision = self.authorizer.authorize(self.user, asked)
        if not decision.allowed:
            raise forbidden(self.user.name, asked, decision.reason)


NOBODY = Caller(ANYBODY, AlwaysDeny())  # for calls without a request
