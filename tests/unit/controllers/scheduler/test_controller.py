"""Which changes need a pass, and what a pass writes."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Node, Pod, PodSchedulingGate
from kcm.controllers.scheduler import SchedulerController, SchedulerOptions
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Bind, Outcome
from kcm.store.writes.guards import EntryUnchanged, Exists
from kcm.testing.builders import START, namespace
from kcm.testing.views import FakeView
from tests.unit.controllers.scheduler.world import bindings, controller, node, pod, run

BOTH = SchedulerController(SchedulerOptions(scheduler_names="default-scheduler, other"))
ALL = {"default-scheduler", "other"}
DEFAULT = {"default-scheduler"}


def keys(old: Any, new: Any) -> set[str]:
    """Returns the keys that a change enqueues."""
    kind = type(old if old is not None else new)
    (watch,) = (watch for watch in BOTH.watches() if watch.model is kind)
    return set(watch.keys(Change(old, new), FakeView()))


GATE = [PodSchedulingGate(name="g")]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, pod(), DEFAULT),
        (None, pod(scheduler_name="theirs"), set()),
        (pod(), pod(status={"message": "?"}), set()),
        (pod(), pod(labels={"a": "b"}), DEFAULT),
        (pod(scheduling_gates=GATE), pod(), DEFAULT),
        (pod(), pod(node="n1"), ALL),
        (None, pod(node="n1"), ALL),
        (None, pod(node="n1", phase="Failed"), set()),
        (pod(node="n1"), pod(node="n1", phase="Running", ready=True), set()),
        (pod(node="n1"), pod(node="n1", phase="Succeeded"), ALL),
        (pod(node="n1"), pod(node="n1", labels={"a": "b"}), ALL),
        (pod(node="n1"), pod(node="n1", deleting=START), ALL),
        (pod(node="n1"), None, ALL),
        (pod(), None, set()),
        (pod(status={"nominated_node_name": "n1"}), None, ALL),
        (None, node("n1"), ALL),
        (node("n1"), None, ALL),
        (node("n1"), node("n1"), set()),
        (node("n1"), node("n1", ready=False), set()),
        (node("n1"), node("n1", cpu="8"), ALL),
        (node("n1"), node("n1", unschedulable=True), ALL),
        (namespace("a"), namespace("a", labels={"b": "c"}), ALL),
        (namespace("a"), namespace("a"), set()),
        (None, namespace("a"), set()),
    ],
)
def test_a_pass_runs_for_what_may_change_its_answer(
    old: Pod | Node | None, new: Pod | Node | None, expected: set[str]
) -> None:
    assert keys(old, new) == expected


def test_a_name_that_is_not_served_gets_no_pass() -> None:
    plan = controller().reconcile("theirs", FakeView(node("n1"), pod()))
    assert not plan.writes


def test_a_binding_is_guarded_by_the_node_and_by_what_was_seen_of_it() -> None:
    where = node("n1")
    (write,) = run(controller(), where, pod(), position=17).writes
    assert isinstance(write, Bind)
    exists, unchanged = write.guards
    assert exists == Exists("nodes", "n1", where.uid)
    assert isinstance(unchanged, EntryUnchanged)
    assert (unchanged.entry, unchanged.since) == ("node:n1", 17)


def test_bindings_are_told_and_counted_when_they_are_written() -> None:
    plan = run(controller(), node("n1"), pod("a"), pod("b"))
    done, refused = plan.writes
    assert isinstance(done, Bind)
    (event,) = plan.events_after(Outcome(done=((done, done.new),)))
    assert (event.reason, event.message) == (
        "Scheduled",
        "Successfully assigned default/a to n1",
    )
    assert plan.counts["scheduler_schedule_attempts|scheduled|default-scheduler"] == 1
    assert refused not in [done]


def test_failures_of_bindings_are_none_of_the_key() -> None:
    plan = run(controller(), node("n1"), pod("a"))
    assert bindings(plan) == {"a": "n1"}
    assert all(batch.optional for batch in plan.batches)


def test_without_nodes_the_message_says_so() -> None:
    plan = run(controller(), pod("a"))
    assert bindings(plan) == {}
    assert [event.message for event in plan.events] == ["no nodes available to schedule pods"]
