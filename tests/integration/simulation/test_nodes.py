from __future__ import annotations

import threading
from datetime import datetime
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.loops import ThreadHost
from kcm.simulation import commands
from kcm.simulation.commands import NodeCommand
from kcm.simulation.scripting import stages
from kcm.simulation.scripting.scripts import PREFIX
from kcm.store import Subresource
from tests.integration.simulation.conftest import NODES, World


def test_nodes_register_renew_their_leases_and_report(world: World) -> None:
    world.go()
    assert [node.name for node in world.store.list(NODES).items] == ["node-1", "node-2", "node-3"]
    assert world.ready("node-2") == "True"
    before = world.node("node-1").metadata.resource_version
    for _ in range(12):
        world.go(5)
        assert world.seconds_since_renewal("node-1") <= 11
    assert world.node("node-1").metadata.resource_version == before
    world.go(300, step=5)
    assert world.node("node-1").metadata.resource_version != before


def test_a_restarted_simulator_takes_its_nodes_over(world: World) -> None:
    world.go()
    uid = world.node("node-1").uid
    world.restart()
    world.go(1)
    assert world.node("node-1").uid == uid
    assert world.seconds_since_renewal("node-1") <= 1


def test_what_others_write_to_a_node_is_kept(world: World) -> None:
    world.go()
    world.store.patch(NODES, "node-1", {"spec": {"unschedulable": True}})
    world.store.patch(NODES, "node-1", {"metadata": {"labels": {"mine": "x"}}})
    world.go(400, step=5)
    node = world.node("node-1")
    assert node.spec.unschedulable
    assert node.labels["mine"] == "x"


def test_a_resource_advertised_in_the_capacity_is_kept_and_can_be_asked_for(world: World) -> None:
    world.go()
    gpu = {"status": {"capacity": {"example.com/gpu": "2"}}}
    world.store.patch(NODES, "node-1", gpu, subresource=Subresource.STATUS)
    world.go(400, step=5)
    status = world.node("node-1").status
    assert str((status.capacity or {})["example.com/gpu"]) == "2"
    assert str((status.allocatable or {})["example.com/gpu"]) == "2"
    limits = {"limits": {"example.com/gpu": "2"}}
    world.pod("served", containers=[{"name": "main", "image": "i", "resources": limits}])
    world.go(5)
    assert world.get("served").status.phase == "Running"


def test_a_stopped_node_is_silent_until_it_is_started(world: World) -> None:
    world.go()
    commands.send(world.store, {"node-2": NodeCommand("stopped", world.clock.now())})
    world.go(30)
    assert world.seconds_since_renewal("node-2") >= 29
    assert world.seconds_since_renewal("node-1") <= 11
    commands.send(world.store, {"node-2": NodeCommand("started", world.clock.now())})
    world.go(0.5)
    assert world.seconds_since_renewal("node-2") <= 1


def test_a_stopped_node_stays_stopped_when_the_simulator_is_restarted(world: World) -> None:
    world.go()
    commands.send(world.store, {"node-2": NodeCommand("stopped", world.clock.now())})
    world.go(1)
    world.restart()
    world.go(20)
    assert world.seconds_since_renewal("node-2") >= 20


def test_a_deleted_node_registers_again_only_when_it_is_started(world: World) -> None:
    world.go()
    uid = world.node("node-3").uid
    world.store.delete(NODES, "node-3")
    world.go(30)
    assert world.store.count(NODES) == 2
    commands.send(world.store, {"node-3": NodeCommand("started", world.clock.now())})
    world.go(1)
    assert world.node("node-3").uid != uid
    assert world.seconds_since_renewal("node-3") <= 1


def test_a_node_that_was_marked_unknown_reports_ready_when_it_is_healed(world: World) -> None:
    world.go()
    commands.send(world.store, {"node-1": NodeCommand("partitioned", world.clock.now())})
    world.go(5)
    node = world.node("node-1")
    unknown = [c.replace(status="Unknown") for c in node.status.conditions or ()]
    world.store.update_status(node.with_status(node.status.replace(conditions=unknown)))
    world.go(5)
    assert world.ready("node-1") == "Unknown"
    commands.send(world.store, {"node-1": None})
    world.go(0.5)
    assert world.ready("node-1") == "True"


def test_annotations_make_a_node_unready_under_pressure_or_silent(world: World) -> None:
    world.go()
    note = {"metadata": {"annotations": {PREFIX + "state": "not-ready,memory-pressure"}}}
    world.store.patch(NODES, "node-1", note)
    world.go(0.5)
    assert world.ready("node-1") == "False"
    kinds = {c.type: c.status for c in world.node("node-1").status.conditions or ()}
    assert kinds["MemoryPressure"] == "True"
    events = [(host, reason) for host, reason, _ in world.recorded.events]
    assert ("node-1", "NodeNotReady") in events
    world.store.patch(NODES, "node-1", {"metadata": {"annotations": {PREFIX + "state": "silent"}}})
    world.go(30)
    assert world.seconds_since_renewal("node-1") >= 25
    world.store.patch(NODES, "node-1", {"metadata": {"annotations": {PREFIX + "state": None}}})
    world.go(1)
    assert world.ready("node-1") == "True"
    assert world.seconds_since_renewal("node-1") <= 1


def test_a_skewed_clock_shows_in_the_lease(world: World) -> None:
    world.go()
    note = {"metadata": {"annotations": {PREFIX + "clock-skew": "1h"}}}
    world.store.patch(NODES, "node-1", note)
    world.go(15)
    assert world.seconds_since_renewal("node-1") < -3500


def test_stages_make_nodes_silent_for_a_while(world: World) -> None:
    world.stages = stages.parse(
        "apiVersion: simulation.kcm.dev/v1\nkind: Stages\nnodes:\n"
        "- {selector: {matchLabels: {topology.kubernetes.io/zone: b}}, state: silent, "
        "after: 10s, lasts: 1m}\n"
    )
    world.restart()
    world.go(60)
    assert world.seconds_since_renewal("node-2") >= 45
    assert world.seconds_since_renewal("node-1") <= 11
    world.go(15)
    assert world.seconds_since_renewal("node-2") <= 11


def test_a_node_registered_by_hand_is_adopted(world: World) -> None:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
    world.store.create(codec.decode(body, NODES))
    world.go()
    assert world.node("node-1").labels["topology.kubernetes.io/zone"] == "a"
    assert world.ready("node-1") == "True"


def test_an_outage_of_the_store_is_waited_out_and_nothing_is_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.go()
    world.pod("a")
    world.go(0)
    store = world.simulator_store
    written = threading.Event()
    failures = iter([True, True, True])
    write = store.write

    def fails(*args: Any, **kwargs: Any) -> Any:
        if next(failures, False):
            world.clock.step(5)
            raise errors.StoreUnavailable("away")
        written.set()
        return write(*args, **kwargs)

    commands.send(world.store, {"node-2": NodeCommand("started", world.clock.now())})
    monkeypatch.setattr(store, "write", fails)
    host = ThreadHost(world.clock)
    host.run(world.simulator)
    assert written.wait(10)
    host.stop()
    monkeypatch.undo()
    world.go(3)
    assert world.list_pods() == {"a": "1/1 Running"}
    assert max(world.seconds_since_renewal(name) for name in ("node-1", "node-2", "node-3")) <= 10


def test_changes_by_others_do_not_put_the_next_report_off(world: World) -> None:
    world.restart(report_every=60.0)
    world.go()
    heartbeat = world.node("node-1").status.conditions
    for number in range(8):
        world.store.patch(NODES, "node-1", {"metadata": {"labels": {"n": str(number)}}})
        world.go(8, step=2)
    assert world.node("node-1").status.conditions != heartbeat


def test_a_node_whose_last_writes_a_failover_has_undone_goes_on_reporting(world: World) -> None:
    def reported() -> datetime | None:
        conditions = world.node("node-1").status.conditions or ()
        return next(c.last_heartbeat_time for c in conditions if c.type == "Ready")

    world.restart(report_every=10.0)
    world.go()
    undo = world.keep("nodes", "node-1")
    world.store.patch(NODES, "node-1", {"metadata": {"annotations": {"a": "b"}}})
    world.go(1)
    undo()
    world.simulator.begin()
    before = reported()
    world.go(20)
    after = reported()
    assert before is not None
    assert after is not None
    assert after > before
