"""Tests the commands `kcm cloud` over a store with simulated nodes."""

from __future__ import annotations

import pytest

from kcm.reconcile.cloudprovider.sim.provider import SimCloud
from kcm.reconcile.cloudprovider.sim.records import Script
from kcm.reconcile.cloudprovider.sim.state import SimState
from kcm.redisio import RedisIO
from kcm.simulation import commands
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.simulator import Simulator
from kcm.store import Store
from kcm.testing.builders import node, service
from kcm.testing.clock import FakeClock
from tests.integration.cli.conftest import Run


@pytest.fixture
def state(io: RedisIO) -> SimState:
    return SimState(io)


@pytest.fixture
def nodes(io: RedisIO, store: Store) -> None:
    options = SimulatorOptions(count=2, events=False, external_cloud=True)
    Simulator(store, options, FakeClock()).turn(0)


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()[1:]]


@pytest.mark.usefixtures("nodes")
def test_instances_are_listed_shut_down_deleted_and_started(
    run: Run, store: Store, state: SimState
) -> None:
    assert rows(run("cloud", "instances").stdout) == [
        ["node-1", "running", "sim.standard", "a", "local", "True", "sim://node-1"],
        ["node-2", "running", "sim.standard", "b", "local", "True", "sim://node-2"],
    ]
    assert "Undo: kcm cloud start node-1" in run("cloud", "shutdown", "node-1").stdout
    assert "A new one: kcm cloud start node-2" in run("cloud", "delete", "node-2").stdout
    assert [row[1] for row in rows(run("cloud", "instances").stdout)] == ["shutdown", "deleted"]
    sent = commands.parse(commands.get_stored(store))
    assert {name: command.state for name, command in sent.items()} == {
        "node-1": "stopped",
        "node-2": "stopped",
    }
    assert run("cloud", "start", "node-1", "node-2").exit_code == 0
    assert state.instance("node-2").state == "running"
    sent = commands.parse(commands.get_stored(store))
    assert {command.state for command in sent.values()} == {"started"}


@pytest.mark.usefixtures("nodes")
def test_an_instance_may_be_of_another_type(run: Run) -> None:
    assert run("cloud", "set", "node-1", "--type", "sim.large", "--zone", "z").exit_code == 0
    assert rows(run("cloud", "instances").stdout)[0][2:4] == ["sim.large", "z"]
    assert run("cloud", "set", "node-1").exit_code == 2
    unknown = run("cloud", "shutdown", "node-9")
    assert unknown.exit_code == 1
    assert 'the cloud has no instance "node-9"; kcm cloud instances lists them' in unknown.stderr


@pytest.mark.usefixtures("store")
def test_load_balancers_and_calls_are_listed(run: Run, state: SimState) -> None:
    assert "No load balancers" in run("cloud", "balancers").stderr
    cloud = SimCloud(state, FakeClock())
    about = service("web", type="LoadBalancer")
    cloud.ensure_load_balancer("kubernetes", about, [node(f"n{number}") for number in range(7)])
    (row,) = rows(run("cloud", "balancers").stdout)
    assert row[:3] == ["default/web", "198.18.0.1", "80/TCP"]
    assert "n0,n1,n2,n3,n4,and 2 more" in " ".join(row)
    assert rows(run("cloud", "calls").stdout)[0][-4:] == [
        "EnsureLoadBalancer",
        "default/web",
        "0.000s",
        "-",
    ]
    assert "No routes." in run("cloud", "routes").stderr


@pytest.mark.usefixtures("store")
def test_calls_are_scripted_and_healed(run: Run, state: SimState) -> None:
    assert "No call is slow" in run("cloud", "scripts").stderr
    assert run("cloud", "slow", "any", "500ms").exit_code == 0
    failing = ("fail", "ensureloadbalancer", "no quota", "--for", "default/web", "--times", "3")
    assert run("cloud", *failing).exit_code == 0
    scripts = [script for script, _ in state.scripts().values()]
    assert Script(delay=0.5) in scripts
    listed = run("cloud", "scripts").stdout
    assert sorted(rows(listed)) == [
        ["EnsureLoadBalancer", "default/web", "0s", "no", "quota", "3"],
        ["any", "-", "500ms", "-", "-"],
    ]
    assert run("cloud", "slow", "Dance", "1s").exit_code == 2
    assert run("cloud", "heal").exit_code == 0
    assert state.scripts() == {}


@pytest.mark.usefixtures("store")
def test_the_pool_is_shown_and_set(run: Run) -> None:
    assert run("cloud", "pool").stdout == "198.18.0.0/15\n"
    assert run("cloud", "pool", "192.0.2.0/28").stdout == "192.0.2.0/28\n"
    wrong = run("cloud", "pool", "192.0.2.7/28")
    assert wrong.exit_code == 1
    assert "is not a range of addresses" in wrong.stderr


def test_help_teaches(run: Run) -> None:
    text = run("cloud", "--help").stdout
    for command in ("balancers", "shutdown", "slow", "heal"):
        assert f"kcm cloud {command}" in text
