"""Chaos over a whole control plane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from kcm.testing import ApiError, ChaosKind, ControlPlane
from kcm.testing.faults.chaos import KINDS
from kcm.testing.faults.deeds import DEEDS, Victims

START = datetime(2026, 1, 1, tzinfo=UTC)
MAPS = "/api/v1/namespaces/default/configmaps"
Connect = Callable[..., httpx.Client]


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    with ControlPlane(nodes=2) as started:
        for name in ("first", "second", "third"):
            containers = [{"name": "main", "image": "nginx:1.27"}]
            started.apply(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": name},
                    "spec": {"containers": containers},
                }
            )
            started.wait_for(f"pod/{name}", condition="Ready")
        yield started


def is_whole(cp: ControlPlane) -> bool:
    ready = [pod.key for pod in cp.pods]
    return len(ready) == 3 and all(node.ready and not node.states for node in cp.nodes)


def test_the_same_seed_hits_the_same(cp: ControlPlane) -> None:
    lasting = [kind for kind in KINDS if kind not in ("pod-crash", "pod-oom")]
    logs = []
    for _ in range(2):
        cp.eventually(lambda: is_whole(cp))
        chaos = cp.chaos(seed=7, rate=60.0, of=lasting)
        for second in range(60):
            chaos.step(START + timedelta(seconds=second))
        chaos.stop()
        logs.append([str(entry) for entry in chaos.log])
        assert cp.faults.active == []
        assert not any(node.states for node in cp.nodes)
    assert logs[0] == logs[1]
    assert {entry.what for entry in chaos.log} > {"node-stop", "conflict", "pod-not-ready"}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("pod-")])
def test_each_kind_does_something_and_undoes_it(cp: ControlPlane, kind: ChaosKind) -> None:
    cp.eventually(lambda: is_whole(cp))
    hook: dict[str, Any] = {"metadata": {"name": "idle"}, "webhooks": []}
    group = "admissionregistration.k8s.io/v1"
    cp.apply({"apiVersion": group, "kind": "MutatingWebhookConfiguration", **hook})
    victims = Victims(cp.faults, cp.nodes, cp.pods, lambda: cp.store)
    done = DEEDS[kind](victims, 0.5)
    assert done is not None
    targets = {"node": "node-2", "webhook": "webhook idle: refused"}
    assert done.target == targets.get(kind.partition("-")[0], done.target)
    if kind == "watch-cut":
        assert done.undo is None
        return
    assert done.undo is not None
    assert cp.faults.active or cp.nodes["node-2"].states
    done.undo()
    assert not cp.faults.active
    assert not cp.nodes["node-2"].states


def test_all_that_can_happen_happens_and_heals(cp: ControlPlane) -> None:
    cp.eventually(lambda: is_whole(cp))
    with cp.chaos(seed=3, rate=600.0) as chaos:
        cp.eventually(lambda: {entry.what for entry in chaos.log} == set(KINDS))
    ended = len(chaos.log)
    done = {entry.what for entry in chaos.log if entry.target}
    assert {"conflict", "watch-expired", "stale", "slow"} & done
    assert {"node-stop", "node-partition", "node-full"} & done
    assert cp.faults.active == []
    cp.eventually(lambda: all(node.ready and not node.states for node in cp.nodes))
    assert len(chaos.log) == ended


def test_an_operator_gets_its_work_done_all_the_same(cp: ControlPlane, connect: Connect) -> None:
    """It reads and writes until each write is in, as a reconcile loop does."""
    operator = connect(timeout=0.5)
    of: list[ChaosKind] = ["conflict", "busy", "error", "unavailable", "cut", "slow", "timeout"]

    def count_up() -> None:
        seen: dict[str, Any] = operator.get(f"{MAPS}/count").raise_for_status().json()
        seen["data"]["count"] = str(int(seen["data"]["count"]) + 1)
        operator.put(f"{MAPS}/count", json=seen).raise_for_status()

    data = {"count": "0"}
    meta = {"name": "count"}
    cp.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
    outcomes: list[bool] = []

    def worked_and_failed() -> bool:
        try:
            count_up()
            outcomes.append(True)
        except httpx.HTTPError:
            outcomes.append(False)
        return outcomes.count(True) >= 20 and outcomes.count(False) >= 5

    # At a higher rate, more requests are to fail than a client on a slow machine sends.
    with cp.chaos(seed=5, rate=60.0, of=of, for_="my-operator") as chaos:
        cp.eventually(worked_and_failed, within="5m")
    assert len(chaos.log) > 0
    # a write whose answer was lost may have been made, so there may be more
    assert int(cp.get("configmap/count")["data"]["count"]) >= outcomes.count(True)


def test_what_failed_is_in_the_timeline(control_plane: ControlPlane) -> None:
    fault = control_plane.faults.api(verb="get", resource="secrets", error=503, for_="kcm-testing")
    with fault, pytest.raises(ApiError):
        control_plane.get("secret/none")
    text = str(control_plane.history("secrets"))
    assert "503" in text
    assert "secrets" in text
