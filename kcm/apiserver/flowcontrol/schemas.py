"""Finds the FlowSchema of a request.

Source: matchesFlowSchema in staging/src/k8s.io/apiserver/pkg/util/flowcontrol/rule.go, and
computeFlowDistinguisher in apf_controller.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kcm.api.flowcontrol_v1 import (
    FlowSchema,
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    ResourcePolicyRule,
    Subject,
)
from kcm.api.priority_levels import MANDATORY_SCHEMAS
from kcm.apiserver.auth.attributes import Attributes, User, service_account

_MOST_KEPT = 4096  # sorts of requests whose FlowSchema is remembered
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Flow:
    """The requests that share a FlowSchema and what it tells flows apart by: a user, a namespace,
    or nothing.
    """

    schema: str
    distinguisher: str
    level: str
    schema_uid: bytes


class FlowSchemas:
    """FlowSchemas in the order in which they are tried."""

    def __init__(self, schemas: Iterable[FlowSchema], levels: Collection[str]) -> None:
        """A FlowSchema whose priority level is not among `levels` matches nothing. The mandatory
        ones are added where they are missing.
        """
        by_name = {**MANDATORY_SCHEMAS, **{schema.name: schema for schema in schemas}}
        usable = (schema for schema in by_name.values() if _level(schema) in levels)
        self._schemas = sorted(usable, key=_precedence)
        self._flows: dict[tuple[User, str, str, str, str, str], Flow] = {}

    def find(self, user: User, asked: Attributes) -> Flow:
        """Returns the flow of a request."""
        sort = (user, asked.verb, asked.group, asked.full_resource, asked.namespace, asked.path)
        flow = self._flows.get(sort)
        if flow is None:
            if len(self._flows) >= _MOST_KEPT:
                self._flows.clear()
            flow = self._flows[sort] = self._find(user, asked)
        return flow

    def _find(self, user: User, asked: Attributes) -> Flow:
        schema = next(
            (schema for schema in self._schemas if matches(schema, user, asked)),
            MANDATORY_SCHEMAS["catch-all"],  # matches every user that has a group
        )
        method = schema.spec.distinguisher_method
        told_apart_by = {"ByUser": user.name, "ByNamespace": asked.namespace}
        distinguisher = told_apart_by.get(method.type, "") if method is not None else ""
        return Flow(
            schema.name, distinguisher, _level(schema), (schema.metadata.uid or "").encode()
        )


def _level(schema: FlowSchema) -> str:
    return schema.spec.priority_level_configuration.name


def _precedence(schema: FlowSchema) -> tuple[int, str]:
    return schema.spec.matching_precedence or 0, schema.name


def matches(schema: FlowSchema, user: User, asked: Attributes) -> bool:
    """Reports whether a rule of the FlowSchema matches a request."""
    return any(_rule_matches(rule, user, asked) for rule in schema.spec.rules or ())


def _rule_matches(rule: PolicyRulesWithSubjects, user: User, asked: Attributes) -> bool:
    if not any(_is_subject(subject, user) for subject in rule.subjects):
        return False
    if asked.path:
        return any(_covers_path(one, asked) for one in rule.non_resource_rules or ())
    return any(_covers_resource(one, asked) for one in rule.resource_rules or ())


def _is_subject(subject: Subject, user: User) -> bool:
    if subject.kind == "User" and subject.user is not None:
        return subject.user.name in (_ANY, user.name)
    if subject.kind == "Group" and subject.group is not None:
        return subject.group.name == _ANY or subject.group.name in user.groups
    if subject.kind == "ServiceAccount" and subject.service_account is not None:
        account, wanted = service_account(user.name), subject.service_account
        return account is not None and (
            account[0] == wanted.namespace and wanted.name in (_ANY, account[1])
        )
    return False


def _covers_resource(rule: ResourcePolicyRule, asked: Attributes) -> bool:
    if not (
        _contains(rule.verbs, asked.verb)
        and _contains(rule.resources, asked.full_resource)
        and _contains(rule.api_groups, asked.group)
    ):
        return False
    if not asked.namespace:
        return bool(rule.cluster_scope)
    return _contains(rule.namespaces or (), asked.namespace)


def _covers_path(rule: NonResourcePolicyRule, asked: Attributes) -> bool:
    return _contains(rule.verbs, asked.verb) and any(
        url in (_ANY, asked.path) or asked.path.startswith(_folder(url))
        for url in rule.non_resource_urls
    )


def _folder(url: str) -> str:
    """Returns the path in which the paths of a rule lie: `/logs/` for `/logs` and `/logs/*`."""
    prefix = url.removesuffix("*")
    return prefix if prefix.endswith("/") else f"{prefix}/"


def _contains(wanted: Sequence[str], value: str) -> bool:
    """Reports whether a list of a rule has a value; `*` stands alone."""
    return value in wanted or (len(wanted) == 1 and wanted[0] == _ANY)
