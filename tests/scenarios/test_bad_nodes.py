"""Nodes, leases and pods that make no sense, beside others that do, with real processes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node, NodeCondition
from kcm.coordination.workqueue import read_stats
from kcm.testing import builders
from kcm.testing.waiting import until
from tests.new_objects import strip_store_fields
from tests.scenarios.test_silent_nodes import LEASES, NODES, Fleet, Launch, launch

__all__ = ["launch"]

pytestmark = pytest.mark.scenario

AHEAD = timedelta(days=3650)
STORM = 100_000  # status writes at most


def add_odd_nodes(fleet: Fleet) -> None:
    """Such as only a broken kubelet reports, each in a zone of its own: they speak for no other."""
    twice = [NodeCondition(type="Ready", status="True"), NodeCondition(type="Ready", status="")]
    for name, conditions in {
        "odd-none": None,
        "odd-empty": [],
        "odd-twice": twice,
        "odd-words": [NodeCondition(type="Ready", status="perhaps")],
    }.items():
        node = builders.node(name, labels={"topology.kubernetes.io/zone": name})
        stored = fleet.store.create(strip_store_fields(node))
        fleet.store.update_status(
            stored.with_status(node.status.replace(conditions=conditions, capacity=None))
        )
    for name in ("odd-none", "nobody"):  # a lease that was never renewed; one without a node
        lease = builders.lease(name, namespace="kube-node-lease")
        bare = lease.with_spec(lease.spec.replace(renew_time=None, holder_identity=None))
        fleet.store.create(strip_store_fields(bare))


def foretell(fleet: Fleet, name: str) -> None:
    """A last renewal, ten years from now."""
    lease = fleet.store.get(LEASES, f"kube-node-lease/{name}")
    assert isinstance(lease, Lease)
    renewed = lease.spec.replace(renew_time=datetime.now(UTC) + AHEAD)
    fleet.store.update(lease.with_spec(renewed))


def register_anew(fleet: Fleet, name: str) -> None:
    """Another machine under the name of an old one."""
    old = fleet.store.get(NODES, name)
    assert isinstance(old, Node)
    fleet.store.delete(NODES, name)
    fresh = fleet.store.create(strip_store_fields(builders.node(name, labels=old.labels)))
    assert fresh.metadata.uid != old.metadata.uid


def test_what_makes_no_sense_holds_up_nobody(launch: Launch) -> None:
    fleet = launch("aaaaa")
    add_odd_nodes(fleet)
    fleet.pod("impatient", "a0", -5)
    fleet.pod("patient", "a0", 3600)
    fleet.pod("elsewhere", "a2", -5)
    fleet.go_dark("a0", "a1")
    fleet.wait_for_beats(2)  # one may have been in progress
    foretell(fleet, "a0")
    register_anew(fleet, "a1")
    fleet.go_dark("a0")
    until(lambda: "a0" in fleet.unknown(), "the mark, future or not")
    until(lambda: "impatient" in fleet.list_deleting(), "an eviction at once")
    assert fleet.list_deleting() == {"impatient"}
    assert "a0" in fleet.list_tainted()
    assert fleet.unknown() & {"a1", "a2", "a3", "a4"} == set()
    until(lambda: len(fleet.messages_of("RemovingNode")) == 1, "the end of the old a1")
    failing = {s.name: s.failing for s in read_stats(fleet.cluster.io) if s.failing}
    assert failing == {}
    fleet.come_back()
    until(lambda: "a0" not in fleet.list_tainted(), "the return")


@pytest.mark.long
def test_a_storm_of_heartbeats_delays_no_mark(launch: Launch) -> None:
    fleet = launch("aaaaa")
    fleet.go_dark("a0")
    node, stamp = fleet.nodes()["a4"], datetime.now(UTC).replace(microsecond=0)
    for number in count():
        stamp += timedelta(seconds=1)
        conditions = [c.replace(last_heartbeat_time=stamp) for c in node.status.conditions or ()]
        beat = node.with_status(node.status.replace(conditions=conditions))
        fleet.store.update_status(beat.with_metadata(resource_version=""))  # as a kubelet's patch
        if number % 100 == 0 and fleet.unknown():
            break  # in the midst of it
        assert number < STORM, "the mark waits for the storm's end"
    assert fleet.unknown() == {"a0"}
