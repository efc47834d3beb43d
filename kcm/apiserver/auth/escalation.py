"""Rejects writes of roles and bindings by which a user would grant permissions they lack.

Source: pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased and
pkg/registry/rbac/escalation_check.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kcm import errors
from kcm.api.rbac_v1 import (
    GROUP,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
)
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.auth.authorizer import Caller
from kcm.apiserver.auth.covering import MOST_LISTED, TooManyRulesError, find_uncovered
from kcm.apiserver.auth.rules import ALL, PreparedRule, format_rule, merge_rules
from kcm.apiserver.auth.users import quote_list

_EVERYTHING = (
    PolicyRule(verbs=[ALL], api_groups=[ALL], resources=[ALL]),
    PolicyRule(verbs=[ALL], non_resource_urls=[ALL]),
)
_PLURALS = {"Role": "roles", "ClusterRole": "clusterroles"}


@dataclass(frozen=True)
class _Write:
    """A role or binding that is about to be stored."""

    resource: Resource
    new: KubeObject
    caller: Caller


def grants_anything(obj: KubeObject) -> bool:
    """Reports whether the object is a role or a binding."""
    return isinstance(obj, Role | ClusterRole | RoleBinding | ClusterRoleBinding)


def check(caller: Caller, resource: Resource, new: KubeObject, old: KubeObject | None) -> None:
    """Raises Forbidden unless the caller has the permissions that `new` grants.

    The verbs `escalate` (on roles) and `bind` (on bindings) allow to grant others, too. `old` is
    the stored object, None for a create. Raises NotFound if a binding's role does not exist, and
    StoreUnavailable.
    """
    write = _Write(resource, new, caller)
    if isinstance(new, Role | ClusterRole):
        _check_role(write, old)
    elif isinstance(new, RoleBinding | ClusterRoleBinding):
        _check_binding(write, new, old)


def _check_role(write: _Write, old: KubeObject | None) -> None:
    rules, aggregates = _content(write.new)
    if old is not None and _content(old) == (rules, aggregates):
        return
    if write.caller.may(_on(write, "escalate", write.resource.plural, write.new.name)):
        return
    _confirm(write, _EVERYTHING if aggregates else rules)


def _content(role: KubeObject) -> tuple[Sequence[PolicyRule], object]:
    assert isinstance(role, Role | ClusterRole)  # the caller compared the kind of the new one
    return role.rules or [], role.aggregation_rule if isinstance(role, ClusterRole) else None


def _check_binding(
    write: _Write, new: RoleBinding | ClusterRoleBinding, old: KubeObject | None
) -> None:
    if isinstance(old, RoleBinding | ClusterRoleBinding) and (
        (old.subjects or [], old.role_ref) == (new.subjects or [], new.role_ref)
    ):
        return
    plural = _PLURALS.get(new.role_ref.kind, "")
    if write.caller.may(_on(write, "bind", plural, new.role_ref.name)):
        return
    # Roles that the caller has just written count.
    write.caller.authorizer.catch_up()
    _confirm(write, write.caller.authorizer.role_rules(new.role_ref, new.namespace))


def _on(write: _Write, verb: str, plural: str, name: str) -> Attributes:
    return Attributes(verb, GROUP, "v1", plural, namespace=write.new.namespace, name=name)


def _confirm(write: _Write, wanted: Sequence[PolicyRule]) -> None:
    caller, new = write.caller, write.new
    rights = caller.authorizer.rights(caller.user, new.namespace)
    missing = _list_missing(wanted, rights.rules)
    if not missing:
        return
    groups = quote_list(caller.user.groups)
    why = (
        f'user "{caller.user.name}" (groups={groups}) is attempting to grant '
        f"RBAC permissions not currently held:\n{missing}"
    )
    if rights.errors:
        why += f"; resolution errors: {quote_list(rights.errors)}"
    raise errors.Forbidden(
        f'{write.resource.name} "{new.name}" is forbidden: {why}',
        resource=write.resource.name,
        name=new.name,
    )


def _list_missing(wanted: Sequence[PolicyRule], held: Sequence[PreparedRule]) -> str:
    """Returns the rules that are not held as text, a line for each, "" if all are held."""
    try:
        missing = find_uncovered(wanted, held)
    except TooManyRulesError:
        return "there are too many rules to compare; grant them in several roles"
    lines = sorted(format_rule(rule) for rule in merge_rules(missing))
    if len(missing) == MOST_LISTED:
        lines.append("and possibly others")
    return "\n".join(lines)
