"""Which requests a fault is about."""

from __future__ import annotations

import re
from dataclasses import InitVar, dataclass
from typing import Literal, get_args

from kcm import errors
from kcm.api.scheme import BUILT_IN, Kinds
from kcm.apiserver.auth.attributes import service_account
from kcm.apiserver.filters.fault_rules import RequestFacts

TESTER = "kcm-testing"  # the user agent of ControlPlane's own requests
Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
VERBS: tuple[Verb, ...] = get_args(Verb)
_PLURAL = re.compile(r"[a-z0-9-]+(\.[a-z0-9.-]+)?(/([a-z]+|\*))?")


@dataclass(frozen=True)
class Target:
    """The requests that a fault is about. What is None is anything.

    Requests of the ControlPlane itself, such as those of `apply` and `wait_for`, are left alone
    unless `for_` names them.
    """

    verb: Verb | None = None
    resource: str | None = None
    namespace: str | None = None
    name: str | None = None
    for_: str | None = None
    kinds: InitVar[Kinds] = BUILT_IN  # of the store

    def __post_init__(self, kinds: Kinds) -> None:
        if self.verb is not None and self.verb not in VERBS:
            raise ValueError(f"verb={self.verb!r} is none of the API's: use {', '.join(VERBS)}")
        if self.resource is not None:
            _check_resource(self.resource, kinds)
        for field in ("namespace", "name", "for_"):
            if getattr(self, field) == "":
                raise ValueError(f"{field}='' matches nothing: leave it out to match everything")

    def matches(self, facts: RequestFacts) -> bool:
        """Reports whether a request is one of these."""
        return (
            self.verb in (None, facts.verb)
            and self.namespace in (None, facts.namespace)
            and self.name in (None, facts.name)
            and (self.resource is None or _is_resource(self.resource, facts))
            and _is_for(self.for_, facts)
        )

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        who = f" for {self.for_}" if self.for_ else ""
        name = f" {self.name}" if self.name else ""
        return f"{self.verb or 'any verb'} {self.resource or 'any resource'}{name}{where}{who}"


def _check_resource(resource: str, kinds: Kinds) -> None:
    main, slash, subresource = resource.partition("/")
    if slash and not subresource:
        raise ValueError(
            f"resource={resource!r} is no plural: use {main!r}, or one like pods/status"
        )
    try:
        kind = kinds.lookup(main)
    except errors.UnknownKind:  # perhaps a custom kind that is defined later
        if _PLURAL.fullmatch(resource):
            return
        raise ValueError(
            f"resource={resource!r} is no plural: use one like deployments, deployments.apps, "
            "pods/status or pods/*"
        ) from None
    if main not in (kind.plural, kind.name):
        raise ValueError(f"resource={resource!r} is no plural: use {kind.plural!r}")


def _is_resource(wanted: str, facts: RequestFacts) -> bool:
    main, _, subresource = wanted.partition("/")
    return main in (facts.resource, facts.qualified_resource) and (
        subresource in (facts.subresource, "*" if facts.subresource else None)
    )


def _is_for(wanted: str | None, facts: RequestFacts) -> bool:
    if wanted is None:
        return facts.agent != TESTER
    if facts.agent.startswith(wanted) or facts.user == wanted:
        return True
    account = service_account(facts.user)
    return account is not None and wanted in (account[1], "/".join(account), ":".join(account))
