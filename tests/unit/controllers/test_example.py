"""Tests the example of a user's own controller, loaded as a user loads it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from kcm import registry
from kcm.reconcile.contract import Controller
from kcm.reconcile.plan import Delete, Plan
from kcm.testing.builders import START, replica_set
from kcm.testing.views import FakeView

EXAMPLE = Path(__file__).parents[3] / "examples" / "05-controller" / "expiry.py"
HOURS = {"example.com/expires-after": "2h"}


@pytest.fixture(scope="module")
def controller() -> Controller:
    (kind,) = registry.load_module(str(EXAMPLE))
    return kind()


def reconcile(controller: Controller, after: timedelta, **metadata: object) -> Plan:
    rs = replica_set(metadata=metadata)
    view = FakeView(rs, now=START + after, controller=controller)
    return controller.reconcile(rs.key, view)


def test_without_the_annotation_nothing_happens(controller: Controller) -> None:
    plan = reconcile(controller, timedelta(days=9))
    assert (plan.writes, plan.requeue_after) == ([], None)


def test_before_its_time_it_comes_back_in_time(controller: Controller) -> None:
    plan = reconcile(controller, timedelta(minutes=90), annotations=HOURS)
    assert (plan.writes, plan.requeue_after) == ([], 1800.0)


def test_after_its_time_the_replica_set_is_deleted_and_told_of(controller: Controller) -> None:
    plan = reconcile(controller, timedelta(hours=2), annotations=HOURS)
    (write,) = plan.writes
    assert isinstance(write, Delete)
    assert write.options.uid == write.old.uid
    assert [(event.type, event.reason) for event in plan.events] == [("Normal", "Expired")]


@pytest.mark.parametrize("text", ["", "soon", "2", "-1h", "1h 2m"])
def test_what_is_not_a_duration_is_told_of(controller: Controller, text: str) -> None:
    annotations = {"example.com/expires-after": text}
    plan = reconcile(controller, timedelta(hours=2), annotations=annotations)
    assert plan.writes == []
    assert [(event.type, event.reason) for event in plan.events] == [("Warning", "BadExpiry")]


def test_one_that_is_being_deleted_is_left_alone(controller: Controller) -> None:
    plan = reconcile(controller, timedelta(hours=9), annotations=HOURS, deletion_timestamp=START)
    assert plan.writes == []


def test_it_runs_beside_ours() -> None:
    names = {kind.name for kind in registry.controller_types([str(EXAMPLE)])}
    assert {"expiry-controller", "replicaset-controller"} <= names
