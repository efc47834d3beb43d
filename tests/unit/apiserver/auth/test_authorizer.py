"""Which requests a rule allows, and which rules cover others, as tables."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm.api.rbac_v1 import PolicyRule
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.auth.authorizer import PreparedRule, format_rule, merge_rules
from kcm.apiserver.auth.covering import MOST_LISTED, TooManyRulesError, find_uncovered


def rule(verbs: str, groups: str = "", resources: str = "", **more: Any) -> PolicyRule:
    """Returns a rule from lists separated by spaces. `core` is the core group."""
    return PolicyRule(
        verbs=verbs.split(),
        api_groups=["" if group == "core" else group for group in groups.split()] or None,
        resources=resources.split() or None,
        **more,
    )


def ask(verb: str, resource: str, group: str = "", name: str = "") -> Attributes:
    plural, _, subresource = resource.partition("/")
    return Attributes(verb, group, "v1", plural, subresource, "default", name)


@pytest.mark.parametrize(
    ("given", "asked", "allowed"),
    [
        (rule("get", "core", "pods"), ask("get", "pods"), True),
        (rule("get", "core", "pods"), ask("list", "pods"), False),
        (rule("get", "core", "pods"), ask("get", "pods", "apps"), False),
        (rule("get", "core", "pods"), ask("get", "pods/log"), False),
        (rule("get", "core", "pods/log"), ask("get", "pods/log"), True),
        (rule("get", "core", "pods/log"), ask("get", "pods"), False),
        (rule("get", "core", "*/log"), ask("get", "pods/log"), True),
        (rule("get", "core", "*/log"), ask("get", "pods"), False),
        (rule("get", "core", "pods/*"), ask("get", "pods/log"), False),
        (rule("get", "core", "*"), ask("get", "pods/log"), True),
        (rule("get", "*", "*"), ask("get", "x/y", "any.group"), True),
        (rule("*", "core", "pods"), ask("", "pods"), True),
        (rule("GET", "core", "pods"), ask("get", "pods"), False),
        (rule("get", "core", "pods", resource_names=["a"]), ask("get", "pods", name="a"), True),
        (rule("get", "core", "pods", resource_names=["a"]), ask("get", "pods", name="b"), False),
        (rule("list", "core", "pods", resource_names=["a"]), ask("list", "pods"), False),
        (rule("get", non_resource_urls=["*"]), ask("get", "pods"), False),
        (rule("get", "*", "*"), Attributes("get", path="/metrics"), False),
        (rule("get", non_resource_urls=["/metrics"]), Attributes("get", path="/metrics"), True),
        (rule("get", non_resource_urls=["/metrics"]), Attributes("get", path="/metrics/"), False),
        (rule("get", non_resource_urls=["/api/*"]), Attributes("get", path="/api/v1"), True),
        (rule("get", non_resource_urls=["/api/*"]), Attributes("get", path="/api"), False),
        (rule("get", non_resource_urls=["/api/*"]), Attributes("get", path="//api/v1"), False),
        (rule("get", non_resource_urls=["*"]), Attributes("get", path="/x"), True),
        (rule("get", non_resource_urls=["*"]), Attributes("post", path="/x"), False),
        (rule("get", non_resource_urls=["/a*b"]), Attributes("get", path="/acb"), False),
    ],
)
def test_a_rule_allows_what_upstreams_does(
    given: PolicyRule, asked: Attributes, allowed: bool
) -> None:
    assert PreparedRule(given).allows(asked) is allowed


@pytest.mark.parametrize(
    ("held", "wanted", "covered"),
    [
        ([rule("*", "*", "*")], rule("get", "apps", "x/y"), True),
        ([rule("get list", "core", "pods")], rule("get", "core", "pods"), True),
        ([rule("get", "core", "pods")], rule("*", "core", "pods"), False),
        ([rule("get", "core", "pods")], rule("get", "*", "pods"), False),
        ([rule("get", "core", "pods")], rule("get", "core", "*"), False),
        ([rule("get", "core", "a"), rule("get", "core", "b")], rule("get", "core", "a b"), True),
        ([rule("get", "core", "*/scale")], rule("get", "core", "x/scale"), True),
        ([rule("get", "core", "*/scale")], rule("get", "core", "x"), False),
        ([rule("get", "core", "x", resource_names=["a"])], rule("get", "core", "x"), False),
        ([rule("get", "core", "x")], rule("get", "core", "x", resource_names=["a"]), True),
        ([rule("get", "core", "x", resource_names=["a"])],
         rule("get", "core", "x", resource_names=["a", "b"]), False),
        ([rule("get", non_resource_urls=["/a/*"])], rule("get", non_resource_urls=["/a/b"]), True),
        ([rule("get", non_resource_urls=["/a/*"])], rule("get", non_resource_urls=["*"]), False),
        ([rule("*", "*", "*")], rule("get", non_resource_urls=["/a"]), False),
        ([rule("*", non_resource_urls=["*"])], rule("get", "core", "pods"), False),
        ([], rule("get", "core", "pods"), False),
    ],
)  # fmt: skip
def test_rules_cover_what_upstreams_do(
    held: list[PolicyRule], wanted: PolicyRule, covered: bool
) -> None:
    missing = find_uncovered([wanted], [PreparedRule(one) for one in held])
    assert (not missing) is covered


def test_what_is_missing_is_told_together() -> None:
    missing = find_uncovered([rule("get list", "core", "pods secrets")], [])
    assert [format_rule(part) for part in merge_rules(missing)] == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
    ]


def wide(count: int, mark: str = "") -> PolicyRule:
    """Returns a rule with so many verbs, groups, resources and names."""
    verbs, groups, resources = (
        " ".join(f"{mark}{kind}{n}" for n in range(count)) for kind in ("v", "g", "r")
    )
    return rule(verbs, groups, resources, resource_names=[f"n{n}" for n in range(count)])


@pytest.mark.parametrize("count", [100, 10_000])
def test_a_wide_rule_is_compared_in_linear_time(count: int) -> None:
    before = time.process_time()
    assert (
        len(find_uncovered([wide(count)], [PreparedRule(rule("get", "core", "pods"))]))
        == MOST_LISTED
    )
    assert find_uncovered([wide(count)], [PreparedRule(rule("*", "*", "*"))]) == []
    assert (
        find_uncovered(
            [wide(count)], [PreparedRule(wide(count, "other")), PreparedRule(wide(count))]
        )
        == []
    )
    assert time.process_time() - before < 10


def test_comparing_with_very_many_rules_is_cut() -> None:
    held = [
        PreparedRule(rule(f"v{n}", f"g{n}", f"r{n}", resource_names=[f"n{n}"])) for n in range(200)
    ]
    before = time.process_time()
    with pytest.raises(TooManyRulesError):
        find_uncovered([wide(200)], held)
    with pytest.raises(TooManyRulesError):
        find_uncovered([wide(10)] * 10_000, [*held, PreparedRule(wide(10))])
    assert time.process_time() - before < 10


NAMES = st.lists(st.sampled_from(["a", "b", "c/x", "*", "*/x"]), max_size=3)
RULES = st.lists(
    st.builds(
        PolicyRule,
        verbs=NAMES,
        api_groups=NAMES,
        resources=NAMES,
        resource_names=st.none() | NAMES,
        non_resource_urls=st.none() | st.lists(st.sampled_from(["/a", "/a/b", "/a/*", "*"])),
    ),
    max_size=3,
)


@given(RULES, RULES)
def test_what_is_uncovered_is_what_no_rule_covers_part_by_part(
    wanted: list[PolicyRule], held: list[PolicyRule]
) -> None:
    having = [PreparedRule(one) for one in held]
    missing = {
        (group, resource, verb, name)
        for one in wanted
        for group in one.api_groups or ()
        for resource in one.resources or ()
        for verb in one.verbs
        for name in one.resource_names or [""]
        if not any(
            h.covers_group(group)
            and h.covers_resource(resource)
            and h.covers_verb(verb)
            and h.covers_name(name)
            for h in having
        )
    }
    policy_rules = [part for part in find_uncovered(wanted, having) if part.resources]
    uncovered = {
        (part.api_groups[0], part.resources[0], part.verbs[0], (part.resource_names or [""])[0])
        for part in policy_rules
        if part.api_groups and part.resources
    }
    assert uncovered == missing if len(policy_rules) < MOST_LISTED else uncovered <= missing
