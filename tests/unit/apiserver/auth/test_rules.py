"""Which requests a rule of RBAC allows, after TestAuthorizer and TestRuleMatches of
plugin/pkg/auth/authorizer/rbac/rbac_test.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import pytest

from kcm.api.rbac_v1 import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    RoleBinding,
    RoleRef,
    Subject,
)
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.auth.authorizer import PreparedRule
from kcm.apiserver.auth.rbac import RBAC
from tests.unit.apiserver.auth.caches import FakeHub

VERBS, GROUPS = ("verb1", "verb2"), ("group1", "group2")
RESOURCES = ("resource1", "resource2")
PATHS = ("/foo", "/foo/bar", "/foo/baz", "/foo/bar/one", "/foo/baz/one", "/notfoo", "/notfoo/bar")


def rule(verbs: str, groups: str, resources: str) -> PolicyRule:
    return PolicyRule(
        verbs=verbs.split(), api_groups=groups.split(" "), resources=resources.split()
    )


@pytest.mark.parametrize(
    ("allowing", "expected"),
    [
        (rule("*", "group1", "resource1"), lambda v, g, r: (g, r) == ("group1", "resource1")),
        (rule("verb1", "*", "resource1"), lambda v, g, r: (v, r) == ("verb1", "resource1")),
        (rule("verb1", "group1", "*"), lambda v, g, r: (v, g) == ("verb1", "group1")),
        (rule("verb1 verb2", "group1 group2", "resource1 resource2"), lambda v, g, r: True),
    ],
)
def test_a_rule_for_resources(
    allowing: PolicyRule, expected: Callable[[str, str, str], bool]
) -> None:
    prepared = PreparedRule(allowing)
    for verb, group, resource in product(VERBS, GROUPS, RESOURCES):
        asked = Attributes(verb, group, "v1", resource)
        assert prepared.allows(asked) is expected(verb, group, resource)


def test_a_rule_for_a_subresource() -> None:
    prepared = PreparedRule(rule("*", "*", "resource1/subresource1"))
    for verb, group, resource, part in product(VERBS, GROUPS, RESOURCES, ("1", "2")):
        asked = Attributes(verb, group, "v1", resource, f"subresource{part}")
        assert prepared.allows(asked) is ((resource, part) == ("resource1", "1"))


@pytest.mark.parametrize(
    ("verbs", "urls", "allowed"),
    [
        (["verb1"], ["*"], PATHS),
        (["verb1"], ["/foo/*"], PATHS[1:5]),
        (["*"], ["/foo", "/foo/bar/one"], ("/foo", "/foo/bar/one")),
    ],
)
def test_a_rule_for_paths(verbs: list[str], urls: list[str], allowed: Sequence[str]) -> None:
    prepared = PreparedRule(PolicyRule(verbs=verbs, non_resource_urls=urls))
    for verb, path in product(VERBS, PATHS):
        expected = path in allowed and verbs[0] in ("*", verb)
        assert prepared.allows(Attributes(verb, path=path)) is expected


ADMIN, JOE = User("admin"), User("joe", groups=("group1", "admins"))


def authorizer(*rules: PolicyRule, namespace: str = "ns1") -> RBAC:
    """Returns RBAC with these rules bound to the user admin and the group admins."""
    subjects = [Subject(kind="User", name="admin"), Subject(kind="Group", name="admins")]
    ref = RoleRef(kind="ClusterRole", name="admin")
    meta = ObjectMeta(name="admin", namespace=namespace or None)
    model = RoleBinding if namespace else ClusterRoleBinding
    return RBAC(
        FakeHub(
            ClusterRole(metadata=ObjectMeta(name="admin"), rules=list(rules)),
            model(metadata=meta, role_ref=ref, subjects=subjects),
        )
    )


@pytest.mark.parametrize(
    ("who", "group", "resource", "namespace", "allowed"),
    [
        (ADMIN, "", "Pods", "ns1", True),
        (ADMIN, "group1", "Foobar", "ns1", True),
        (JOE, "", "Foobar", "ns1", True),
        (User("joe"), "", "Foobar", "ns1", False),
        (ADMIN, "", "Pods", "ns2", False),
        (ADMIN, "", "Nodes", "", False),
        (JOE, "", "Pods", "ns2", False),
    ],
)
def test_everything_in_a_namespace(
    who: User, group: str, resource: str, namespace: str, allowed: bool
) -> None:
    rbac = authorizer(rule("*", "*", "*"))
    asked = Attributes("watch", group, "v1", resource, namespace=namespace)
    assert rbac.authorize(who, asked).allowed is allowed


@pytest.mark.parametrize(
    ("resources", "asked", "allowed"),
    [
        ("pods", "pods/", True),
        ("pods", "pods/status", False),
        ("pods/status */scale", "pods/status", True),
        ("pods/status */scale", "pods/scale", True),
        ("pods/status */scale", "anything/scale", True),
        ("pods/status */scale", "pods/", False),
    ],
)
def test_subresources_in_a_namespace(resources: str, asked: str, allowed: bool) -> None:
    plural, _, part = asked.partition("/")
    attributes = Attributes("get", "", "v1", plural, part, namespace="ns1")
    assert authorizer(rule("*", "*", resources)).authorize(ADMIN, attributes).allowed is allowed


def test_paths_are_allowed_to_users_and_groups() -> None:
    rbac = authorizer(PolicyRule(verbs=["get"], non_resource_urls=["/apis/*"]), namespace="")
    for who, path, allowed in (
        (ADMIN, "/apis/v1", True),
        (JOE, "/apis/v1/foobar", True),
        (ADMIN, "/api/v1", False),
        (User("joe"), "/apis/v1", False),
    ):
        assert rbac.authorize(who, Attributes("get", path=path)).allowed is allowed
