"""Decisions: may this user do that?

Source: staging/src/k8s.io/apiserver/pkg/authorization, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kcm.api.rbac_v1 import PolicyRule, RoleRef
from kcm.apiserver.auth.attributes import Attributes, forbidden
from kcm.apiserver.auth.rules import ALL, Rule
from kcm.apiserver.auth.users import ANYBODY, MASTERS, User

MODES = ("RBAC", "AlwaysAllow")


@dataclass(frozen=True)
class Decision:
    """Whether, and why."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True)
class Rights:
    """All rules that hold for a user in a namespace; `errors` tells what could not be read."""

    rules: Sequence[Rule]
    errors: Sequence[str] = ()


class Authorizer(Protocol):
    """Decides."""

    def authorize(self, user: User, asked: Attributes) -> Decision:
        """Whether the user may. Raises StoreUnavailable before the roles are known."""
        ...

    def rights(self, user: User, namespace: str) -> Rights:
        """What the user may in a namespace, and in the cluster. Raises StoreUnavailable."""
        ...

    def role_rules(self, reference: RoleRef, namespace: str) -> Sequence[PolicyRule]:
        """The rules of a role. Raises: NotFound, StoreUnavailable."""
        ...

    def catch_up(self) -> None:
        """Wait until the roles written before this call are known; blocks. Raises
        StoreUnavailable."""
        ...


class AlwaysAllow:
    """Everybody who gets in may do everything."""

    def authorize(self, user: User, asked: Attributes) -> Decision:
        return Decision(True)

    def rights(self, user: User, namespace: str) -> Rights:
        everything = PolicyRule(verbs=[ALL], api_groups=[ALL], resources=[ALL])
        return Rights([Rule(everything), Rule(PolicyRule(verbs=[ALL], non_resource_urls=[ALL]))])

    def role_rules(self, reference: RoleRef, namespace: str) -> Sequence[PolicyRule]:
        return ()

    def catch_up(self) -> None:
        return


class AlwaysDeny(AlwaysAllow):
    """Nobody may do anything."""

    def authorize(self, user: User, asked: Attributes) -> Decision:
        return Decision(False)

    def rights(self, user: User, namespace: str) -> Rights:
        return Rights(())


class Masters:
    """system:masters may do everything; others what the authorizer behind says."""

    def __init__(self, behind: Authorizer) -> None:
        self._behind = behind
        self.rights = behind.rights
        self.role_rules = behind.role_rules
        self.catch_up = behind.catch_up

    def authorize(self, user: User, asked: Attributes) -> Decision:
        if MASTERS in user.groups:
            return Decision(True)
        return self._behind.authorize(user, asked)


@dataclass(frozen=True)
class Caller:
    """The user of one request, for what handlers have to ask beyond the request's own verb."""

    user: User
    authorizer: Authorizer

    def may(self, asked: Attributes) -> bool:
        """Whether the user may. Raises StoreUnavailable."""
        return self.authorizer.authorize(self.user, asked).allowed

    def require(self, asked: Attributes) -> None:
        """Raises: Forbidden, StoreUnavailable."""
        decision = self.authorizer.authorize(self.user, asked)
        if not decision.allowed:
            raise forbidden(self.user.name, asked, decision.reason)


NOBODY = Caller(ANYBODY, AlwaysDeny())  # where no request is behind a call
