"""Decisions of RBAC, as a table of roles, bindings and users."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api.rbac_v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from kcm.apimachinery.meta_v1 import LabelSelector, ObjectMeta
from kcm.apiserver.auth import policy, rbac
from kcm.apiserver.auth.attributes import AUTHENTICATED, Attributes, User
from kcm.apiserver.auth.authorizer import Caller, Masters
from kcm.apiserver.auth.covering import MOST_LISTED
from kcm.apiserver.auth.rbac import RBAC
from tests.unit.apiserver.auth.caches import FakeHub

READS_PODS = PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"])
JANE = User("jane", groups=("dev",))


def role(name: str, namespace: str = "") -> Role | ClusterRole:
    meta = ObjectMeta(name=name, namespace=namespace or None)
    return (Role if namespace else ClusterRole)(metadata=meta, rules=[READS_PODS])


def bind(to: str, *subjects: Subject, namespace: str = "") -> RoleBinding | ClusterRoleBinding:
    """Returns a binding to the role `to`, which is KIND/NAME."""
    kind, _, name = to.partition("/")
    meta = ObjectMeta(name=f"{name}-bound", namespace=namespace or None)
    model = RoleBinding if namespace else ClusterRoleBinding
    return model(
        metadata=meta, role_ref=RoleRef(kind=kind, name=name), subjects=list(subjects) or None
    )


def user(name: str) -> Subject:
    return Subject(kind="User", name=name)


def pods(namespace: str = "a") -> Attributes:
    return Attributes("get", "", "v1", "pods", namespace=namespace, name="x")


@pytest.mark.parametrize(
    ("subject", "who", "allowed"),
    [
        (user("jane"), JANE, True),
        (user("Jane"), JANE, False),
        (user("*"), JANE, False),
        (Subject(kind="Group", name="dev"), JANE, True),
        (Subject(kind="Group", name="jane"), JANE, False),
        (Subject(kind="user", name="jane"), JANE, False),
        (Subject(kind="ServiceAccount", name="x", namespace="b"),
         User("system:serviceaccount:b:x"), True),
        (Subject(kind="ServiceAccount", name="x"), User("system:serviceaccount:a:x"), True),
        (Subject(kind="ServiceAccount", name="x"), User("system:serviceaccount:b:x"), False),
        (Subject(kind="ServiceAccount", name="jane", namespace="a"), JANE, False),
    ],
)  # fmt: skip
def test_a_binding_is_for_its_subjects(subject: Subject, who: User, allowed: bool) -> None:
    cacher = FakeHub(role("r", "a"), bind("Role/r", subject, namespace="a"))
    assert RBAC(cacher).authorize(who, pods()).allowed is allowed


@pytest.mark.parametrize(
    ("objects", "namespace", "allowed"),
    [
        ([role("r", "a"), bind("Role/r", user("jane"), namespace="a")], "a", True),
        ([role("r", "a"), bind("Role/r", user("jane"), namespace="a")], "b", False),
        ([role("r", "a"), bind("Role/r", user("jane"), namespace="a")], "", False),
        ([role("r", "b"), bind("Role/r", user("jane"), namespace="a")], "a", False),
        ([role("r"), bind("ClusterRole/r", user("jane"), namespace="a")], "a", True),
        ([role("r"), bind("ClusterRole/r", user("jane"), namespace="a")], "b", False),
        ([role("r"), bind("ClusterRole/r", user("jane"))], "b", True),
        ([role("r"), bind("ClusterRole/r", user("jane"))], "", True),
        ([role("r"), bind("Role/r", user("jane"), namespace="a")], "a", False),
        ([role("r", "a"), bind("ClusterRole/r", user("jane"), namespace="a")], "a", False),
        ([role("r", "a")], "a", False),
    ],
)
def test_roles_hold_where_they_are_bound(
    objects: list[Role | RoleBinding], namespace: str, allowed: bool
) -> None:
    assert RBAC(FakeHub(*objects)).authorize(JANE, pods(namespace)).allowed is allowed


def test_the_reason_names_binding_role_and_subject_as_upstream_does() -> None:
    cacher = FakeHub(role("r"), bind("ClusterRole/r", user("jane")))
    assert RBAC(cacher).authorize(JANE, pods()).reason == (
        'RBAC: allowed by ClusterRoleBinding "r-bound" of ClusterRole "r" to User "jane"'
    )
    account = Subject(kind="ServiceAccount", name="x", namespace="b")
    cacher = FakeHub(role("r", "a"), bind("Role/r", account, namespace="a"))
    assert RBAC(cacher).authorize(User("system:serviceaccount:b:x"), pods()).reason == (
        'RBAC: allowed by RoleBinding "r-bound/a" of Role "r" to ServiceAccount "x/b"'
    )


def test_a_role_that_is_missing_is_told() -> None:
    rbac = RBAC(FakeHub(bind("Role/none", user("jane"), namespace="a")))
    assert rbac.authorize(JANE, pods()).reason == (
        'RBAC: role.rbac.authorization.k8s.io "none" not found'
    )
    with pytest.raises(errors.NotFound):
        rbac.role_rules(RoleRef(kind="ClusterRole", name="none"), "")


def test_a_decision_sees_every_change_of_the_caches() -> None:
    cacher = FakeHub()
    rbac = RBAC(cacher)
    assert not rbac.authorize(JANE, pods()).allowed
    cacher.fill(role("r"), bind("ClusterRole/r", user("jane")))
    assert rbac.authorize(JANE, pods()).allowed
    cacher.fill(bind("ClusterRole/r", user("jane")))
    assert not rbac.authorize(JANE, pods()).allowed


def test_nobody_but_masters_gets_in_before_the_roles_are_known() -> None:
    decides = Masters(RBAC(FakeHub(filled=False)))
    with pytest.raises(errors.StoreUnavailable):
        decides.authorize(JANE, pods())
    assert decides.authorize(User("x", groups=("system:masters",)), pods()).allowed


def test_aggregated_roles_hold_without_their_controller() -> None:
    selector = LabelSelector(match_labels={"to": "all"})
    whole = ClusterRole(
        metadata=ObjectMeta(name="all"),
        aggregation_rule=AggregationRule(cluster_role_selectors=[selector]),
    )
    part = role("part").with_metadata(labels={"to": "all"})
    rbac = RBAC(FakeHub(whole, part, bind("ClusterRole/all", user("jane"))))
    assert rbac.authorize(JANE, pods()).allowed


def default(name: str, verb: str, resource: str, group: str = "") -> bool:
    """Reports whether a default role that is bound in namespace `a` allows a request."""
    objects = [*policy.cluster_roles(), *policy.cluster_role_bindings()]
    binding = bind(f"ClusterRole/{name}", user("u"), namespace="a")
    plural, _, sub = resource.partition("/")
    asked = Attributes(verb, group, "v1", plural, sub, "a")
    return RBAC(FakeHub(*objects, binding)).authorize(User("u"), asked).allowed


RBAC_GROUP = "rbac.authorization.k8s.io"


@pytest.mark.parametrize(
    ("verb", "resource", "group", "roles"),
    [
        ("list", "pods", "", "view edit admin cluster-admin"),
        ("get", "pods/log", "", "view edit admin cluster-admin"),
        ("watch", "replicasets", "apps", "view edit admin cluster-admin"),
        ("get", "secrets", "", "edit admin cluster-admin"),
        ("create", "pods", "", "edit admin cluster-admin"),
        ("create", "pods/exec", "", "edit admin cluster-admin"),
        ("patch", "replicasets/scale", "apps", "edit admin cluster-admin"),
        ("impersonate", "serviceaccounts", "", "edit admin cluster-admin"),
        ("update", "pods/status", "", "cluster-admin"),
        ("create", "rolebindings", RBAC_GROUP, "admin cluster-admin"),
        ("escalate", "roles", RBAC_GROUP, "cluster-admin"),
        ("list", "nodes", "", "cluster-admin"),
        ("create", "namespaces", "", "cluster-admin"),
    ],
)
def test_the_default_roles_allow_what_upstreams_do(
    verb: str, resource: str, group: str, roles: str
) -> None:
    names = ["view", "edit", "admin", "cluster-admin"]
    assert [name for name in names if default(name, verb, resource, group)] == roles.split()


def test_whoever_is_known_may_discover_and_ask_about_themselves() -> None:
    rbac = RBAC(FakeHub(*policy.cluster_roles(), *policy.cluster_role_bindings()))
    known = User("x", groups=(AUTHENTICATED,))
    reviews = Attributes("create", "authorization.k8s.io", "v1", "selfsubjectaccessreviews")
    assert rbac.authorize(known, reviews).allowed
    assert rbac.authorize(known, Attributes("get", path="/openapi/v2")).allowed
    assert not rbac.authorize(known, Attributes("get", path="/metrics")).allowed
    assert not rbac.authorize(User("x"), reviews).allowed


@pytest.mark.parametrize(("lacking", "others"), [(MOST_LISTED - 1, False), (MOST_LISTED, True)])
def test_what_a_user_grants_without_having_it_is_listed_up_to_a_limit(
    lacking: int, others: bool
) -> None:
    held = [READS_PODS, PolicyRule(verbs=["get"], api_groups=[""], resources=["nodes"])]
    own = ClusterRole(metadata=ObjectMeta(name="own"), rules=held)
    caller = Caller(JANE, RBAC(FakeHub(own, bind("ClusterRole/own", user("jane")))))
    rbac.check(caller, ClusterRole.resource, own, None)
    resources = ["pods", *(f"r{number}" for number in range(lacking))]
    wanted = PolicyRule(verbs=["get"], api_groups=[""], resources=resources)
    more = ClusterRole(metadata=ObjectMeta(name="more"), rules=[wanted])
    with pytest.raises(errors.Forbidden) as raised:
        rbac.check(caller, ClusterRole.resource, more, None)
    head, _, listed = raised.value.message.partition(":\n")
    assert head == (
        'clusterroles.rbac.authorization.k8s.io "more" is forbidden: user "jane" (groups=["dev"]) '
        "is attempting to grant RBAC permissions not currently held"
    )
    assert ('"r0"' in listed, '"pods"' in listed) == (True, False)
    assert ("and possibly others" in listed) is others
