"""The RBAC authorizer, which reads roles and bindings from the watch caches.

It computes the rules of aggregated cluster roles itself, so they apply whether or not the
controller that writes them into the roles runs.

Source: plugin/pkg/auth/authorizer/rbac/rbac.go and pkg/registry/rbac/validation/rule.go, Kubernetes
1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kcm import errors
from kcm.api.rbac_v1 import (
    GROUP,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.attributes import Attributes, User, quote_list, service_account_name
from kcm.apiserver.auth.authorizer import (
    ALL,
    AuthorizerDecision,
    Caller,
    PreparedRule,
    UserRules,
    format_rule,
    merge_rules,
)
from kcm.apiserver.auth.covering import MOST_LISTED, TooManyRulesError, find_uncovered
from kcm.apiserver.cache.caches import FreshCaches
from kcm.apiserver.cache.watch_cache import WatchCache
from kcm.helpers.aggregation import aggregate_rules

_MODELS = (Role, ClusterRole, RoleBinding, ClusterRoleBinding)
_MOST_RESOLVED = 1024  # users and namespaces whose rules are kept ready


@dataclass(frozen=True)
class _Grant:
    """A binding and one of its subjects, to which it grants its role."""

    binding: RoleBinding | ClusterRoleBinding
    subject: Subject

    def __str__(self) -> str:
        binding, subject, role = self.binding, self.subject, self.binding.role_ref
        name = f"{binding.name}/{binding.namespace}" if binding.namespace else binding.name
        who = subject.name
        if subject.kind == "ServiceAccount":
            who = f"{subject.name}/{subject.namespace or binding.namespace}"
        return f'{binding.kind} "{name}" of {role.kind} "{role.name}" to {subject.kind} "{who}"'


# keyed by kind ("User", "Group") and name of the subject
_Grants = dict[tuple[str, str], list[_Grant]]


@dataclass
class _Resolved:
    """The rules that apply to one user in one namespace, and errors about missing roles."""

    granted: list[tuple[PreparedRule, _Grant]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class RBAC:
    """Decides by Roles, ClusterRoles and their bindings."""

    def __init__(self, caches: FreshCaches) -> None:
        self._caches = caches
        self._kinds = [model.resource for model in _MODELS]
        self._sources = [caches.cache(kind) for kind in self._kinds]
        self._index = _Index((), (), (), ())
        self._seen: tuple[int, ...] = ()

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        resolved = self._current().resolve(user, asked.namespace)
        for rule, grant in resolved.granted:
            if rule.allows(asked):
                return AuthorizerDecision(True, f"RBAC: allowed by {grant}")
        problems = resolved.errors
        listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        return AuthorizerDecision(False, f"RBAC: {listed}" if problems else "")

    def rights(self, user: User, namespace: str) -> UserRules:
        resolved = self._current().resolve(user, namespace)
        return UserRules([rule for rule, _ in resolved.granted], resolved.errors)

    def role_rules(self, reference: RoleRef, namespace: str) -> Sequence[PolicyRule]:
        return [rule.policy for rule in self._current().rules(reference, namespace)]

    def catch_up(self) -> None:
        self._caches.wait_until_fresh(*self._kinds)

    def _current(self) -> _Index:
        # The numbers are read before the objects: what changes in between is seen next time.
        numbers = tuple(source.generation for source in self._sources)
        if numbers != self._seen:
            if not all(source.position >= 0 for source in self._sources):
                raise errors.StoreUnavailable("the roles are not loaded yet")
            self._index = _Index(*(_objects(source) for source in self._sources))
            self._seen = numbers
        return self._index


def _objects(source: WatchCache) -> list[KubeObject]:
    return [entry.obj for entry in source.entries()]


class _Index:
    """Roles by name and grants by subject, for one state of the caches."""

    def __init__(
        self,
        roles: Iterable[KubeObject],
        cluster_roles: Iterable[KubeObject],
        bindings: Iterable[KubeObject],
        cluster_bindings: Iterable[KubeObject],
    ) -> None:
        self._roles = {role.key: role for role in roles if isinstance(role, Role)}
        self._cluster_roles = {r.name: r for r in cluster_roles if isinstance(r, ClusterRole)}
        self._ready: dict[tuple[str, str], list[PreparedRule]] = {}
        self._resolved: dict[tuple[User, str], _Resolved] = {}
        self._grants: dict[str, _Grants] = {"": {}}  # keyed by namespace; "" stands for the cluster
        for binding in (*cluster_bindings, *bindings):
            # Listed by these resources.
            assert isinstance(binding, RoleBinding | ClusterRoleBinding)
            grants = self._grants.setdefault(binding.namespace, {})
            for subject in binding.subjects or ():
                if key := _subject_key(subject, binding.namespace):
                    grants.setdefault(key, []).append(_Grant(binding, subject))

    def resolve(self, user: User, namespace: str) -> _Resolved:
        """Returns the rules of a user in a namespace and in the cluster. Results are kept."""
        resolved = self._resolved.get((user, namespace))
        if resolved is None:
            if len(self._resolved) >= _MOST_RESOLVED:
                self._resolved.clear()
            resolved = self._resolved[(user, namespace)] = self._resolve(user, namespace)
        return resolved

    def _resolve(self, user: User, namespace: str) -> _Resolved:
        resolved = _Resolved()
        for place in dict.fromkeys(("", namespace)):
            for grant in _grants_of(user, self._grants.get(place, {})):
                try:
                    rules = self.rules(grant.binding.role_ref, place)
                except errors.NotFound as error:
                    resolved.errors.append(error.message)
                    continue
                resolved.granted.extend((rule, grant) for rule in rules)
        return resolved

    def rules(self, reference: RoleRef, namespace: str) -> list[PreparedRule]:
        """Returns the rules of a role that a binding in this namespace ("": the cluster) names.

        Raises NotFound.
        """
        inside = namespace if reference.kind == "Role" else ""
        key = (inside, reference.name)
        if key not in self._ready:
            policies = self._policies(reference.kind, inside, reference.name)
            self._ready[key] = [PreparedRule(policy) for policy in policies]
        return self._ready[key]

    def _policies(self, kind: str, namespace: str, name: str) -> Sequence[PolicyRule]:
        if kind == "Role":
            role = self._roles.get(f"{namespace}/{name}")
            if role is None:
                raise errors.NotFound(f'role.{GROUP} "{name}" not found')
            return role.rules or ()
        cluster_role = self._cluster_roles.get(name)
        if kind != "ClusterRole" or cluster_role is None:
            raise errors.NotFound(f'clusterrole.{GROUP} "{name}" not found')
        return aggregate_rules(cluster_role, self._cluster_roles.values())


def _subject_key(subject: Subject, namespace: str) -> tuple[str, str] | None:
    if subject.kind != "ServiceAccount":
        return (subject.kind, subject.name)
    inside = subject.namespace or namespace
    return ("User", service_account_name(inside, subject.name)) if inside else None


def _grants_of(user: User, grants: _Grants) -> Iterator[_Grant]:
    yield from grants.get(("User", user.name), ())
    for group in dict.fromkeys(user.groups):
        yield from grants.get(("Group", group), ())


# --- Rejects writes of roles and bindings by which a user would grant permissions they lack.
#
# Source: pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased and
# pkg/registry/rbac/escalation_check.go, Kubernetes 1.33.


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
