"""Tests the computations of a Deployment's sync, and the hashes and annotations of its
revisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.apps_v1 import (
    DeploymentStrategy,
    ReplicaSet,
)
from kcm.controllers.deployment.bounds import max_surge, max_unavailable
from kcm.controllers.deployment.revisions import (
    DESIRED,
    HASH,
    HISTORY,
    MAXIMUM,
    REVISION,
    annotations_of_new,
    same_template,
    template_hash,
)
from kcm.controllers.deployment.rolling import roll
from kcm.controllers.deployment.rollout import Draft, Rollout
from kcm.controllers.deployment.scaling import scale
from kcm.testing.builders import deployment, replica_set
from tests.unit.controllers.deployments import build_rolling_update

# --- arithmetic


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, 3, 2, (3, 2)),
        (10, "25%", "25%", (3, 2)),
        (4, "25%", "25%", (1, 1)),
        (1, "25%", "25%", (1, 0)),
        (3, "0%", "0%", (0, 1)),
        (3, 0, 0, (0, 1)),
        (3, 0, "1%", (0, 1)),
        (2, 1, 5, (1, 2)),
        (0, 1, 1, (1, 0)),
        (7, "100%", "100%", (7, 7)),
    ],
)
def test_surge_is_rounded_up_and_unavailability_down(
    replicas: int, surge: Any, unavailable: Any, expected: tuple[int, int]
) -> None:
    owner = deployment(replicas=replicas, strategy=build_rolling_update(surge, unavailable))
    assert (max_surge(owner), max_unavailable(owner)) == expected


def test_recreate_has_neither() -> None:
    owner = deployment(strategy=DeploymentStrategy(type="Recreate"))
    assert (max_surge(owner), max_unavailable(owner)) == (0, 0)


def a_set(
    name: str,
    size: int,
    available: int | None = None,
    annotations: Mapping[str, str] | None = None,
) -> ReplicaSet:
    return replica_set(
        name,
        replicas=size,
        metadata={"annotations": dict(annotations or {})},
        status={"replicas": size, "available_replicas": size if available is None else available},
    )


def drafts(*sizes: tuple[int, int]) -> list[Draft]:
    return [Draft.of(a_set(f"r{n}", size, ready)) for n, (size, ready) in enumerate(sizes)]


@pytest.mark.parametrize(
    ("spec", "old", "new", "expected"),
    [
        pytest.param((10, 2, 0), [(10, 10)], (0, 0), [10, 2], id="the surge comes first"),
        pytest.param((10, 0, 2), [(10, 10)], (0, 0), [8, 0], id="no surge: old ones go first"),
        pytest.param((10, 2, 0), [(10, 10)], (2, 2), [8, 2], id="new ones are there: old ones go"),
        pytest.param((10, 2, 0), [(10, 10)], (2, 0), [10, 2], id="new ones are not ready: wait"),
        pytest.param((10, 0, 2), [(10, 6)], (0, 0), [8, 0], id="unhealthy ones count first"),
        pytest.param((10, 3, 2), [(8, 8)], (5, 0), [8, 5], id="a bad template stops (case 1)"),
        pytest.param((10, 3, 2), [(8, 8), (5, 0)], (0, 0), [8, 0, 0], id="rolling over (case 2)"),
        pytest.param((10, 0, 2), [(4, 4), (4, 4)], (2, 2), [2, 4, 2], id="the oldest goes first"),
        pytest.param((5, 0, 1), [(0, 0)], (5, 5), [0, 5], id="done"),
    ],
)
def test_one_step_of_a_rolling_update(
    spec: tuple[int, int, int], old: Any, new: Any, expected: list[int]
) -> None:
    replicas, surge, unavailable = spec
    owner = deployment(replicas=replicas, strategy=build_rolling_update(surge, unavailable))
    (draft,) = drafts(new)
    rollout = Rollout(owner, drafts(*old), draft)
    roll(rollout)
    assert [obj.replicas for obj in rollout.all] == expected


@pytest.mark.parametrize(
    ("spec", "old", "new", "expected"),
    [
        pytest.param((12, 10, 0), [], 10, [12], id="the only one"),
        pytest.param((5, 10, 0), [], 10, [5], id="the only one, down"),
        pytest.param((20, 10, 0), [5], 5, [10, 10], id="in proportion"),
        pytest.param((20, 10, 0), [2], 8, [4, 16], id="in proportion, uneven"),
        pytest.param((5, 10, 0), [5], 5, [2, 3], id="down, the rest from the older"),
        pytest.param((0, 10, 0), [3], 7, [0, 0], id="to none"),
        pytest.param((15, 10, 2), [10], 2, [14, 3], id="with surge"),
        pytest.param((3, 2, 0), [1], 1, [1, 2], id="what rounding leaves goes to the newer"),
    ],
)
def test_scaling_shares_out_over_replica_sets(
    spec: tuple[int, int, int], old: list[int], new: int, expected: list[int]
) -> None:
    replicas, before, surge = spec
    owner = deployment(replicas=replicas, strategy=build_rolling_update(surge, 1))
    sizes = {DESIRED: str(before), MAXIMUM: str(before + surge)}
    age = timedelta(hours=1)
    olds = [a_set(f"old{n}", size, annotations=sizes) for n, size in enumerate(old)]
    olds = [rs.with_metadata(creation_timestamp=_get_creation_time(rs) - age) for rs in olds]
    newest = Draft.of(a_set("new", new, annotations=sizes))
    rollout = Rollout(owner, [Draft.of(rs) for rs in olds], newest)
    scale(rollout)
    assert [obj.replicas for obj in rollout.all] == expected


def _get_creation_time(rs: ReplicaSet) -> Any:
    return rs.metadata.creation_timestamp


def test_a_new_set_that_is_full_takes_the_old_ones_pods_away() -> None:
    owner = deployment(replicas=5)
    full = Draft.of(a_set("new", 5, annotations={DESIRED: "5"}))
    rollout = Rollout(owner, drafts((2, 2)), full)
    scale(rollout)
    assert [obj.replicas for obj in rollout.all] == [0, 5]


# --- revisions


def test_templates_are_told_apart_by_their_hash_and_collisions() -> None:
    template, other = deployment().spec.template, deployment(labels={"app": "b"}).spec.template
    hashes = {template_hash(template, None), template_hash(template, 1), template_hash(other, None)}
    assert len(hashes) == 3
    labels = {**(template.metadata.labels or {}), HASH: "x"}
    labelled = template.replace(metadata=template.metadata.replace(labels=labels))
    assert same_template(template, labelled)
    assert not same_template(template, other)


def test_the_new_set_has_the_deployments_annotations_but_what_is_the_deployments_own() -> None:
    owner = deployment(
        metadata={
            "annotations": {
                "note": "x",
                REVISION: "7",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            }
        }
    )
    annotations = annotations_of_new(owner, {"kept": "y"}, 3, exists=False)
    assert annotations == {"kept": "y", "note": "x", REVISION: "3"}


def test_a_template_that_comes_back_keeps_its_old_revisions_and_not_without_end() -> None:
    first = annotations_of_new(deployment(), {REVISION: "1"}, 3, exists=True)
    assert first == {REVISION: "3", HISTORY: "1"}
    again = annotations_of_new(deployment(), first, 5, exists=True)
    assert again == {REVISION: "5", HISTORY: "1,3"}
    many = {REVISION: "9999", HISTORY: ",".join(str(n) for n in range(1000, 1400))}
    history = annotations_of_new(deployment(), many, 10_000, exists=True)[HISTORY]
    assert len(history) <= 2000
    assert history.endswith(",1399,9999")


def test_revisions_are_compared_as_numbers() -> None:
    assert annotations_of_new(deployment(), {REVISION: "10"}, 9, exists=True)[REVISION] == "10"
