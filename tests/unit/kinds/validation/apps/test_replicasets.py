"""ReplicaSets."""

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.apps_v1 import ReplicaSet
from kcm.apimachinery.meta_v1 import LabelSelector, LabelSelectorRequirement
from kcm.kinds import defaults
from kcm.kinds.validation import validate_create, validate_status_update, validate_update
from kcm.testing import builders

SETS = ReplicaSet.resource
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}


def faults(**spec: Any) -> list[str]:
    spec = {"selector": SELECTOR, "template": TEMPLATE} | spec
    body = {"metadata": {"name": "web", "namespace": "b"}, "spec": spec}
    return [str(fault) for fault in validate_create(defaults.apply(codec.decode(body, SETS)))]


def with_template(**spec: Any) -> dict[str, Any]:
    return {**TEMPLATE, "spec": {**TEMPLATE["spec"], **spec}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"replicas": 0}, []),
        (
            {"replicas": -1},
            ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"minReadySeconds": -1},
            ["spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"selector": {"matchLabels": {"app": "api"}}},
            [
                'spec.template.metadata.labels: Invalid value: map[string]string{"app":"web"}: '
                "`selector` does not match template `labels`"
            ],
        ),
        (
            {"selector": {}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
        ),
        (
            {"template": with_template(restartPolicy="Never")},
            [
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: '
                '"Always"'
            ],
        ),
        (
            {"template": with_template(activeDeadlineSeconds=5)},
            [
                "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in "
                "ReplicaSet is not Supported"
            ],
        ),
        (
            {"template": with_template(containers=[{"name": "c"}])},
            ["spec.template.spec.containers[0].image: Required value"],
        ),
        (
            {"template": with_template(ephemeralContainers=[{"name": "e", "image": "i"}])},
            [
                "spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not "
                "allowed in pod template"
            ],
        ),
    ],
)
def test_a_spec_is_judged_in_upstreams_words(spec: dict[str, Any], expected: list[str]) -> None:
    assert faults(**spec) == expected


def test_a_selector_is_required() -> None:
    replica_set = builders.replica_set()
    bare = replica_set.with_spec(replica_set.spec.replace(selector=None))
    assert "spec.selector: Required value" in [str(fault) for fault in validate_create(bare)]


def test_a_selector_that_cannot_be_read_is_invalid_as_a_whole_too() -> None:
    requirement = LabelSelectorRequirement(key="a", operator="Like")
    selector = LabelSelector(match_expressions=[requirement])
    messages = [str(fault) for fault in validate_create(builders.replica_set(selector=selector))]
    assert messages[0].startswith(
        'spec.selector.matchExpressions[0].operator: Invalid value: "Like"'
    )
    assert messages[1].endswith("invalid label selector")


def test_images_of_templates_may_have_spaces_around_them() -> None:
    assert faults(template=with_template(containers=[{"name": "c", "image": " "}])) == []


def test_the_selector_may_not_change_and_the_rest_may() -> None:
    old = builders.replica_set()
    assert validate_update(old.with_spec(old.spec.replace(replicas=9)), old) == []
    labels = {"app": "web", "tier": "front"}
    other = builders.replica_set(labels=labels)
    [error] = validate_update(other.with_metadata(labels=old.metadata.labels), old)
    assert str(error) == (
        'spec.selector: Invalid value: {"matchLabels":{"app":"web","tier":"front"}}: '
        "field is immutable"
    )


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"replicas": 3, "ready_replicas": 2, "available_replicas": 1}, []),
        (
            {"replicas": -1},
            ["status.replicas: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"replicas": 1, "ready_replicas": 2},
            ["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"],
        ),
        (
            {"replicas": 1, "available_replicas": 1},
            ["status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas"],
        ),
        (
            {"terminating_replicas": -1},
            ["status.terminatingReplicas: Invalid value: -1: must be greater than or equal to 0"],
        ),
    ],
)
def test_counts_in_a_status_must_agree(status: dict[str, int], expected: list[str]) -> None:
    old = builders.replica_set()
    new = builders.replica_set(status=status)
    messages = [str(fault) for fault in validate_status_update(new, old)]
    assert messages[:1] == expected
