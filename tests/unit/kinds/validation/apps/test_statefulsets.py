"""StatefulSets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample, with_spec
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_changed_status,
    validate_new,
    validate_new_spec,
)

SETS = "statefulsets.apps"
UPDATE = "spec.updateStrategy.rollingUpdate"
POLICY = "spec.persistentVolumeClaimRetentionPolicy"
NOT_NEGATIVE = "must be greater than or equal to 0"
FIXED = (
    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', "
    "'template', 'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def strategy(type_: str = "RollingUpdate", **update: Any) -> dict[str, Any]:
    return {"updateStrategy": {"type": type_, "rollingUpdate": update}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"podManagementPolicy": "Parallel"}, []),
        (
            {"podManagementPolicy": "X"},
            [
                'spec.podManagementPolicy: Invalid value: "X": '
                "must be 'OrderedReady' or 'Parallel'"
            ],
        ),
        (
            {
                "volumeClaimTemplates": [
                    {
                        "metadata": {"name": "data"},
                        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
                    }
                ]
            },
            [
                "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access "
                "mode is required"
            ],
        ),
        ({"updateStrategy": {"type": "OnDelete"}}, []),
        (
            strategy("OnDelete", partition=1),
            [
                f'{UPDATE}: Invalid value: {{"partition":1}}: '
                "only allowed for updateStrategy 'RollingUpdate'"
            ],
        ),
        (strategy(partition=-1), [f"{UPDATE}.partition: Invalid value: -1: {NOT_NEGATIVE}"]),
        (strategy(maxUnavailable="50%"), []),
        (strategy(maxUnavailable=0), [f"{UPDATE}.maxUnavailable: Invalid value: 0: cannot be 0"]),
        (
            strategy(maxUnavailable="101%"),
            [f'{UPDATE}.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
        ),
        (
            {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Keep"}},
            [
                f'{POLICY}.whenScaled: Unsupported value: "Keep": '
                'supported values: "Delete", "Retain"'
            ],
        ),
        ({"replicas": -1}, [f"spec.replicas: Invalid value: -1: {NOT_NEGATIVE}"]),
        ({"minReadySeconds": -1}, [f"spec.minReadySeconds: Invalid value: -1: {NOT_NEGATIVE}"]),
        ({"ordinals": {"start": -1}}, [f"spec.ordinals.start: Invalid value: -1: {NOT_NEGATIVE}"]),
    ],
)
def test_the_spec(spec: dict[str, Any], expected: list[str]) -> None:
    assert validate_new_spec(SETS, **spec) == expected


def test_the_selector_is_not_empty_and_matches() -> None:
    assert validate_new_spec(SETS, selector={})[0].endswith(
        "empty selector is invalid for statefulset"
    )
    (fault,) = validate_new_spec(SETS, selector={"matchLabels": {"app": "other"}})
    assert fault.startswith("spec.template.metadata.labels: Invalid value")


def test_the_name_is_a_label_for_the_pods_are_named_after_it() -> None:
    (fault,) = validate_new(SETS, metadata={"name": "a.b", "namespace": "default"})
    assert "a lowercase RFC 1123 label" in fault


def test_containers_may_mount_what_only_claims_name() -> None:
    container = {"name": "c", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    assert validate_new_spec(SETS, template=template) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"replicas": 5, "minReadySeconds": 3, "ordinals": {"start": 4}}, []),
        ({"revisionHistoryLimit": 2, **strategy(partition=2)}, []),
        ({"serviceName": "other"}, [FIXED]),
        ({"podManagementPolicy": "Parallel"}, [FIXED]),
        ({"volumeClaimTemplates": None}, [FIXED]),
    ],
)
def test_what_may_change(change: dict[str, Any], expected: list[str]) -> None:
    old = sample(SETS).with_metadata(resource_version="1", uid="u")
    new = with_spec(SETS, **change).with_metadata(resource_version="1", uid="u")
    assert validate_changed(new, old) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"replicas": 2, "readyReplicas": 2, "availableReplicas": 1}, []),
        (
            {"replicas": 1, "currentReplicas": 2},
            ["status.currentReplicas: Invalid value: 2: cannot be greater than status.replicas"],
        ),
        (
            {"replicas": 1, "availableReplicas": 1},
            [
                "status.availableReplicas: Invalid value: 1: "
                "cannot be greater than status.readyReplicas"
            ],
        ),
        (
            {"replicas": 0, "collisionCount": 1},
            ["status.collisionCount: Invalid value: 1: cannot be decremented"],
        ),
    ],
)
def test_the_status(status: dict[str, Any], expected: list[str]) -> None:
    old = sample(SETS, status={"collisionCount": 2} if "collisionCount" in status else {})
    old = old.with_metadata(resource_version="1", uid="u")
    new = old.with_status(sample(SETS, status=status).status)
    assert validate_changed_status(new, old) == expected


def test_the_faults_of_pods_that_were_stored_with_them_are_not_told() -> None:
    containers = [{"name": f"C{number}", "image": "i"} for number in range(2000)]
    old = sample(SETS)
    template = {"metadata": {"labels": old.spec.template.metadata.labels}}
    faulty = with_spec(SETS, template=template | {"spec": {"containers": containers}})
    assert validate_changed(faulty.with_spec(faulty.spec.replace(replicas=3)), faulty) == []
