from __future__ import annotations

from dataclasses import replace

import pytest

from kcm.apiserver.filters.fault_rules import RequestFacts
from kcm.testing.faults.target import TESTER, Target

FACTS = RequestFacts(
    verb="update",
    group="apps",
    resource="deployments",
    subresource="",
    namespace="shop",
    name="web",
    user="system:serviceaccount:ops:robot",
    agent="my-operator/1.2 (linux)",
)


@pytest.mark.parametrize(
    ("target", "hits"),
    [
        (Target(), True),
        (Target("update", "deployments", "shop", "web", "my-operator"), True),
        (Target(resource="deployments.apps"), True),
        (Target(resource="deployments.extensions"), False),
        (Target(resource="deployments/scale"), False),
        (Target(resource="deployments/*"), False),
        (Target(verb="patch"), False),
        (Target(namespace="other"), False),
        (Target(name="other"), False),
        (Target(for_="my-operator/1.2"), True),
        (Target(for_="operator"), False),
        (Target(for_="robot"), True),
        (Target(for_="ops/robot"), True),
        (Target(for_="ops:robot"), True),
        (Target(for_="shop/robot"), False),
        (Target(for_="system:serviceaccount:ops:robot"), True),
    ],
)
def test_requests_are_chosen(target: Target, hits: bool) -> None:
    assert target.matches(FACTS) is hits


@pytest.mark.parametrize(
    ("resource", "hits"),
    [("deployments/scale", True), ("deployments/*", True), ("deployments/status", False),
     ("deployments", False), ("deployments.apps/scale", True)],
)  # fmt: skip
def test_subresources_are_named(resource: str, hits: bool) -> None:
    assert Target(resource=resource).matches(replace(FACTS, subresource="scale")) is hits


def test_the_testers_own_requests_are_chosen_only_by_name() -> None:
    own = replace(FACTS, agent=TESTER)
    assert not Target().matches(own)
    assert Target(for_=TESTER).matches(own)
    assert not Target(for_="my-operator").matches(own)


def test_custom_kinds_may_be_named_before_they_are_known() -> None:
    assert Target(resource="crontabs.example.com").resource == "crontabs.example.com"


@pytest.mark.parametrize("resource", ["deployment", "deploy", "Deployment", "Cron Tabs", "pods/"])
def test_a_resource_that_is_no_plural_is_refused(resource: str) -> None:
    with pytest.raises(ValueError, match="is no plural: use"):
        Target(resource=resource)


def test_a_target_and_a_request_can_be_read() -> None:
    target = Target("update", "deployments", "shop", "web", "my-operator")
    assert str(target) == "update deployments web in shop for my-operator"
    assert str(Target()) == "any verb any resource"
    assert str(FACTS) == (
        "update deployments.apps shop/web by system:serviceaccount:ops:robot "
        "(my-operator/1.2 (linux))"
    )
