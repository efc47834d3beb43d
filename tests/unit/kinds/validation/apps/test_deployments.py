"""Deployments and ControllerRevisions."""

from typing import Any

import pytest

from kcm.testing import builders
from tests.samples import sample, with_spec
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_changed_status,
    validate_new,
    validate_new_spec,
)

DEPLOYMENTS = "deployments.apps"
REVISIONS = "controllerrevisions.apps"
NOT_NEGATIVE = "must be greater than or equal to 0"
UPDATE = "spec.strategy.rollingUpdate"


def build_rolling_update(**update: Any) -> dict[str, Any]:
    return {"strategy": {"rollingUpdate": update}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"strategy": {"type": "Recreate"}}, []),
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
            [
                f"{UPDATE}: Forbidden: may not be specified when strategy `type` is 'Recreate'",
            ],
        ),
        (
            {"strategy": {"type": "X"}},
            [
                'spec.strategy: Unsupported value: map[string]string{"type":"X"}: '
                'supported values: "Recreate", "RollingUpdate"'
            ],
        ),
        (build_rolling_update(maxSurge=2, maxUnavailable="100%"), []),
        (
            build_rolling_update(maxSurge="0%", maxUnavailable=0),
            [f"{UPDATE}.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
        ),
        (
            build_rolling_update(maxUnavailable="101%"),
            [f'{UPDATE}.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
        ),
        (
            build_rolling_update(maxSurge=-1),
            [f"{UPDATE}.maxSurge: Invalid value: -1: {NOT_NEGATIVE}"],
        ),
        (
            build_rolling_update(maxSurge="x"),
            [
                f'{UPDATE}.maxSurge: Invalid value: "x": a valid percent string must be a '
                "numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
                "validation is '[0-9]+%')"
            ],
        ),
        (
            {"minReadySeconds": 600},
            [
                "spec.progressDeadlineSeconds: Invalid value: 600: "
                "must be greater than minReadySeconds"
            ],
        ),
        (
            {"replicas": -1, "revisionHistoryLimit": -1},
            [
                f"spec.replicas: Invalid value: -1: {NOT_NEGATIVE}",
                f"spec.revisionHistoryLimit: Invalid value: -1: {NOT_NEGATIVE}",
            ],
        ),
        (
            {"selector": None},
            [
                "spec.selector: Required value",
                'spec.template.metadata.labels: Invalid value: map[string]string{"app":"web"}: '
                "`selector` does not match template `labels`",
            ],
        ),
    ],
)
def test_the_spec_of_a_deployment_is_checked_as_upstream_does(
    spec: dict[str, Any], expected: list[str]
) -> None:
    assert validate_new_spec(DEPLOYMENTS, **spec) == expected


def test_a_plain_deployment_gets_its_defaults() -> None:
    spec = sample(DEPLOYMENTS).spec
    assert spec.replicas == 1
    assert spec.revision_history_limit == 10
    assert spec.progress_deadline_seconds == 600
    assert spec.strategy.type == "RollingUpdate"
    update = spec.strategy.rolling_update
    assert (update.max_surge, update.max_unavailable) == ("25%", "25%")
    assert spec.template.spec.restart_policy == "Always"


def test_what_a_strategy_says_stays() -> None:
    update = with_spec(DEPLOYMENTS, **build_rolling_update(maxSurge=0)).spec.strategy.rolling_update
    assert (update.max_surge, update.max_unavailable) == (0, "25%")
    assert (
        with_spec(DEPLOYMENTS, strategy={"type": "Recreate"}).spec.strategy.rolling_update is None
    )


def test_the_selector_of_a_deployment_never_changes() -> None:
    old, new = builders.deployment(labels={"app": "a"}), builders.deployment(labels={"app": "b"})
    [message] = validate_changed(new, old)
    assert message.startswith("spec.selector: Invalid value")
    assert message.endswith("field is immutable")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"replicas": 3, "ready_replicas": 2, "available_replicas": 2}, []),
        (
            {"unavailable_replicas": -1},
            [f"status.unavailableReplicas: Invalid value: -1: {NOT_NEGATIVE}"],
        ),
        (
            {"replicas": 1, "updated_replicas": 2},
            ["status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas"],
        ),
        (
            {"replicas": 1, "available_replicas": 1},
            ["status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas"],
        ),
    ],
)
def test_the_counts_in_a_status_agree(status: dict[str, int], expected: list[str]) -> None:
    assert (
        validate_changed_status(builders.deployment(status=status), builders.deployment())
        == expected
    )


def test_collisions_are_never_uncounted() -> None:
    old = builders.deployment(status={"collision_count": 2})
    assert validate_changed_status(builders.deployment(status={"collision_count": 1}), old) == [
        "status.collisionCount: Invalid value: 1: cannot be decremented"
    ]
    assert validate_changed_status(builders.deployment(), old) == [
        "status.collisionCount: Invalid value: 0: cannot be decremented"
    ]


def test_a_revision_has_data_that_stays() -> None:
    assert validate_new(REVISIONS, data=None) == ["data: Required value: data is mandatory"]
    assert validate_new(REVISIONS, revision=-1) == [f"revision: Invalid value: -1: {NOT_NEGATIVE}"]
    old = sample(REVISIONS)
    [message] = validate_changed(old.replace(data={"other": True}), old)
    assert message == 'data: Invalid value: {"other":true}: field is immutable'
