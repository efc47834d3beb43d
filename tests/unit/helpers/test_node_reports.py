"""The conditions, Events and leases of nodes that kubelets report."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kcm.api.core_v1 import NodeStatus
from kcm.apimachinery.quantity import Quantity
from kcm.helpers.node_reports import (
    condition,
    differs,
    new_lease,
    renew_lease,
    resources_of,
    transitions,
)
from kcm.testing import builders

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(seconds=60)
FINE, BROKEN = ("KubeletReady", "fine"), ("KubeletNotReady", "broken")


def status(
    ready: bool, pressed: bool, now: datetime, before: NodeStatus | None = None
) -> NodeStatus:
    before = before or NodeStatus()
    return NodeStatus(
        conditions=[
            condition("Ready", ready, FINE if ready else BROKEN, before, now),
            condition("MemoryPressure", pressed, ("x", "y"), before, now),
        ]
    )


def test_the_time_of_a_transition_stays_while_the_status_does() -> None:
    before = status(True, False, NOW)
    after = status(False, False, LATER, before)
    times = [(c.last_transition_time, c.last_heartbeat_time) for c in after.conditions or ()]
    assert times == [(LATER, LATER), (NOW, LATER)]


@pytest.mark.parametrize(
    ("ready", "pressed", "events"),
    [
        (True, False, []),
        (False, False, ["NodeNotReady"]),
        (True, True, ["NodeHasInsufficientMemory"]),
        (False, True, ["NodeNotReady", "NodeHasInsufficientMemory"]),
    ],
)
def test_changes_of_conditions_are_events_and_differences(
    ready: bool, pressed: bool, events: list[str]
) -> None:
    before = status(True, False, NOW)
    after = status(ready, pressed, LATER, before)
    assert transitions(after, before) == events
    assert differs(after, before) is bool(events)


def test_a_first_report_tells_of_each_condition() -> None:
    assert transitions(status(True, False, NOW), NodeStatus()) == [
        "NodeReady", "NodeHasSufficientMemory",
    ]  # fmt: skip


def test_a_lease_belongs_to_the_present_node() -> None:
    node = builders.node("n1")
    lease = new_lease(node.with_metadata(uid="old"), 40, NOW)
    assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("n1", 40)
    again = renew_lease(lease, node.with_metadata(uid="new"), 40, LATER)
    assert [owner.uid for owner in again.metadata.owner_references or ()] == ["new"]
    assert again.spec.renew_time == LATER


def test_reserved_amounts_are_taken_from_what_the_node_has() -> None:
    own = {"cpu": Quantity("4"), "memory": Quantity("1Gi")}
    reserved = {"cpu": Quantity("1"), "memory": Quantity("2Gi"), "gpu": Quantity("1")}
    before = NodeStatus(capacity={"example.com/x": Quantity("2"), "cpu": Quantity("1")})
    capacity, allocatable = resources_of(before, own, reserved)
    assert capacity == {"example.com/x": Quantity("2"), **own}
    assert allocatable == {
        "example.com/x": Quantity("2"), "cpu": Quantity("3"), "memory": Quantity("0")
    }  # fmt: skip
