from __future__ import annotations

from pathlib import Path

import pytest

from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.cli.nodes import forecast
from kcm.reconcile.cloudprovider.sim.records import Script
from kcm.redisio import RedisIO
from kcm.simulation import commands
from kcm.simulation.context import storage_scripts
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.scripting.stages import EXAMPLE
from kcm.simulation.simulator import Simulator
from kcm.store import Store
from kcm.testing.clock import FakeClock
from tests.integration.cli.conftest import Run

MAIN = {"name": "main", "image": "i:1"}


@pytest.fixture
def simulator(io: RedisIO, store: Store) -> Simulator:
    new_simulator = Simulator(store, SimulatorOptions(count=3, events=False), FakeClock())
    new_simulator.turn(0)
    return new_simulator


def read_states(store: Store) -> dict[str, str]:
    return {
        name: command.state for name, command in commands.parse(commands.get_stored(store)).items()
    }


def test_list_shows_the_nodes_by_zone(run: Run, simulator: Simulator) -> None:
    result = run("nodes", "list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["NAME", "ZONE", "READY", "COMMAND", "RENEWED", "PODS", "TAINTS"]
    assert [line.split()[:3] for line in lines[1:]] == [
        ["node-1", "a", "True"],
        ["node-2", "b", "True"],
        ["node-3", "c", "True"],
    ]
    assert "No process simulates them now" in result.stderr


def test_list_without_nodes_says_how_to_get_some(run: Run, store: Store) -> None:
    assert "kcm nodes --count 5" in run("nodes", "list").stderr


def test_stop_and_start_send_commands_and_say_what_follows(
    run: Run, store: Store, simulator: Simulator
) -> None:
    result = run("nodes", "stop", "node-2")
    assert result.exit_code == 0, result.output
    assert "node-2 is stopped" in result.stdout
    assert "Undo: kcm nodes start node-2" in result.stdout
    assert read_states(store) == {"node-2": "stopped"}
    assert "stopped" in run("nodes", "list").stdout
    assert "node-2 starts" in run("nodes", "start", "node-2").stdout
    assert read_states(store) == {"node-2": "started"}


def test_a_zone_is_parted_and_healed(run: Run, store: Store, simulator: Simulator) -> None:
    assert run("nodes", "partition", "--zone", "a", "node-3").exit_code == 0
    assert read_states(store) == {"node-1": "partitioned", "node-3": "partitioned"}
    assert "node-1 is back" in run("nodes", "heal", "--zone", "a").stdout
    assert read_states(store) == {"node-3": "partitioned"}
    run("nodes", "heal")
    assert read_states(store) == {}
    assert "No such node is cut off" in run("nodes", "heal").stdout


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("stop", "nope"), 'no simulated node "nope"'),
        (("partition", "--zone", "q"), 'no simulated node is in zone "q"; there are: a, b, c'),
        (("partition",), "name nodes, or a zone with --zone"),
        (("stop",), "Missing argument"),
    ],
)
def test_wrong_names_are_refused(
    run: Run, simulator: Simulator, args: tuple[str, ...], why: str
) -> None:
    result = run("nodes", *args)
    assert result.exit_code != 0
    assert why in result.output


def test_the_forecast_counts_pods_by_how_long_they_tolerate_it(
    run: Run, store: Store, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Known:
        name = forecast.CONTROLLER

    monkeypatch.setattr(forecast, "controller_types", lambda: [Known])
    commands.store_grace_period(store, 10)
    toleration = {"key": forecast.UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}
    for name, tolerations in (
        ("a", [{**toleration, "tolerationSeconds": 300}]),
        ("b", [toleration]),
        ("c", [{**toleration, "tolerationSeconds": 0}]),
    ):
        body = {"nodeName": "node-2", "tolerations": tolerations, "containers": [MAIN]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}
        store.create(codec.decode(pod, BUILT_IN))
    text = run("nodes", "stop", "node-2").stdout
    assert "10s without a heartbeat" in text
    assert "0s later: 1 pod deleted" in text
    assert "5m0s later: 1 pod deleted" in text
    assert "1 pod stay" in text


def test_status_shows_nodes_by_zone(run: Run, simulator: Simulator) -> None:
    shown = run("status").stdout.splitlines()
    assert shown[0].split() == ["ALERT", "WHAT"]  # neither a manager nor beat runs here
    lines = shown[shown.index("") + 1 :]
    assert lines[0].split() == ["ZONE", "NODES", "READY", "NOT", "READY", "UNKNOWN", "CORDONED"]
    assert lines[1].split() == ["a", "1", "1", "0", "0", "0"]


def test_stages_are_explained_shown_and_checked(run: Run, tmp_path: Path) -> None:
    assert "simulation.kcm.dev/outcome" in run("nodes", "stages").stdout
    assert run("nodes", "stages", "--example").stdout == EXAMPLE
    file = tmp_path / "s.yaml"
    file.write_text(EXAMPLE)
    assert "is valid: 4 entries for pods, 1 for nodes" in run("nodes", "stages", str(file)).stdout
    file.write_text(EXAMPLE.replace("crash", "boom", 1).replace("outcome: crash", "outcome: boom"))
    wrong = run("nodes", "stages", str(file))
    assert wrong.exit_code == 1
    assert 'pods[0].outcome: "boom" is no outcome' in wrong.stderr


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--zones", "A b"), "is no zone name"),
        (("--capacity", "cpu"), "--capacity"),
        (("--start-after", "soon"), "must be a duration"),
        (("--run-for", "never"), "must be finite and not negative"),
        (("--stages", "/nope.yaml"), "cannot be read"),
    ],
)
def test_wrong_flags_are_refused(run: Run, store: Store, flags: tuple[str, ...], why: str) -> None:
    result = run("nodes", *flags)
    assert result.exit_code != 0
    assert why in result.output


def test_calls_to_storage_are_scripted_and_healed(run: Run, store: Store) -> None:
    scripts = storage_scripts(store)
    assert "No call is slow or fails." in run("nodes", "storage", "scripts").stderr
    assert run("nodes", "storage", "slow", "attach", "20s", "--for", "node-1").exit_code == 0
    assert run("nodes", "storage", "hang", "detach").exit_code == 0
    assert run("nodes", "storage", "fail", "any", "no space", "--times", "2").exit_code == 0
    assert {script for script, _ in scripts.list().values()} == {
        Script(call="attach", object="node-1", delay=20),
        Script(call="detach", delay=3600),
        Script(error="no space", limited=True),
    }
    lines = run("nodes", "storage", "scripts").stdout.splitlines()
    assert lines[0].split() == ["CALL", "FOR", "TAKES", "ERROR", "LEFT"]
    assert sorted(line.split()[0] for line in lines[1:]) == ["any", "attach", "detach"]
    assert run("nodes", "storage", "heal").exit_code == 0
    assert scripts.list() == {}
    assert run("nodes", "storage", "slow", "mount", "1s").exit_code == 2
