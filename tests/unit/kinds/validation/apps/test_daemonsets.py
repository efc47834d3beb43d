"""DaemonSets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample, with_spec
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_changed_status,
    validate_new_spec,
)

SETS = "daemonsets.apps"
UPDATE = "spec.updateStrategy.rollingUpdate"
NOT_NEGATIVE = "must be greater than or equal to 0"


def build_rolling_update(**update: Any) -> dict[str, Any]:
    return {"updateStrategy": {"rollingUpdate": update}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"updateStrategy": {"type": "OnDelete"}}, []),
        (
            {"updateStrategy": {"type": "X"}},
            [
                'spec.updateStrategy: Unsupported value: map[string]string{"type":"X"}: '
                'supported values: "RollingUpdate", "OnDelete"'
            ],
        ),
        (build_rolling_update(maxSurge="10%", maxUnavailable=0), []),
        (
            build_rolling_update(maxSurge=1, maxUnavailable=1),
            [
                f"{UPDATE}.maxSurge: Invalid value: 1: "
                "may not be set when maxUnavailable is non-zero"
            ],
        ),
        (
            build_rolling_update(maxUnavailable="0%"),
            [f"{UPDATE}.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
        ),
        (
            build_rolling_update(maxUnavailable="101%"),
            [f'{UPDATE}.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
        ),
        ({"minReadySeconds": -1}, [f"spec.minReadySeconds: Invalid value: -1: {NOT_NEGATIVE}"]),
        (
            {"revisionHistoryLimit": -1},
            [f"spec.revisionHistoryLimit: Invalid value: -1: {NOT_NEGATIVE}"],
        ),
    ],
)
def test_the_spec(spec: dict[str, Any], expected: list[str]) -> None:
    assert validate_new_spec(SETS, **spec) == expected


def test_the_selector_is_not_empty_and_matches() -> None:
    assert validate_new_spec(SETS, selector={})[-1].endswith(
        "empty selector is invalid for daemonset"
    )
    (fault,) = validate_new_spec(SETS, selector={"matchLabels": {"app": "other"}})
    assert fault.startswith("spec.template.metadata.labels: Invalid value")


def test_a_selector_that_cannot_be_read_is_reported_once_and_matches_nothing_else() -> None:
    wrong = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["web"]}]}
    (fault,) = validate_new_spec(SETS, selector=wrong)
    assert fault.startswith("spec.selector.matchExpressions[0].operator: ")


def test_the_selector_stays() -> None:
    old = sample(SETS).with_metadata(resource_version="1", uid="u")
    labels = {"app": "web", "tier": "x"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    new = with_spec(SETS, selector={"matchLabels": labels}, template=template)
    (fault,) = validate_changed(new.with_metadata(resource_version="1", uid="u"), old)
    assert fault.endswith("field is immutable")


def test_counts_in_the_status_are_not_negative() -> None:
    old = sample(SETS).with_metadata(resource_version="1", uid="u")
    new = old.with_status(old.status.replace(number_ready=-1))
    assert validate_changed_status(new, old) == [
        f"status.numberReady: Invalid value: -1: {NOT_NEGATIVE}"
    ]
