"""The usage of pods that simulated nodes report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcm.apimachinery.meta_v1 import OwnerReference
from kcm.simulation.scripting import stages
from kcm.simulation.scripting.scripts import PREFIX
from tests.integration.simulation.conftest import World

OWNER = OwnerReference(
    api_version="apps/v1", kind="ReplicaSet", name="web", uid="u-web", controller=True
)


def find_profiles(**profiles: str) -> dict[str, Any]:
    return {"annotations": {PREFIX + name: text for name, text in profiles.items()}}


def report_usage(world: World, *names: str, what: str = "cpu") -> Sequence[str | None]:
    """Returns each pod's usage as last reported, None for pods without a report."""
    metrics = world.metrics.pods([world.get(name) for name in names])
    return [
        str(metrics[f"default/{name}"].usage[what]) if f"default/{name}" in metrics else None
        for name in names
    ]


def test_an_idle_pod_uses_a_little_once_it_runs(world: World) -> None:
    world.pod("a")
    world.pod("b", node="node-2", **find_profiles(outcome="never-start"))
    world.go(16)
    assert report_usage(world, "a", "b") == ["1m", None]
    nodes = world.metrics.nodes(["node-1", "node-2"])
    assert [str(node.usage["cpu"]) for node in nodes.values()] == ["51m", "50m"]


def test_annotations_say_what_is_used_over_time(world: World) -> None:
    world.restart(metric_resolution=1.0)
    world.pod("a", **find_profiles(cpu="100m for 10s, 2", memory="64Mi", metrics="hits=20"))
    world.go(5)
    assert report_usage(world, "a") == ["100m"]
    assert report_usage(world, "a", what="memory") == ["64Mi"]
    assert str(world.metrics.of_pods("hits", [world.get("a")])["default/a"].value) == "20"
    world.go(6)
    assert report_usage(world, "a") == ["2"]


def test_stages_say_it_as_well(world: World) -> None:
    entry = "{name: all, cpu: 300m, metrics: {hits: 5, depth: 1 for 1m}}"
    kind = "apiVersion: simulation.kcm.dev/v1\nkind: Stages\n"
    world.stages = stages.parse(f"{kind}pods: [{entry}]\n")
    world.restart(metric_resolution=1.0)
    world.pod("a")
    world.go(3)
    assert report_usage(world, "a") == ["300m"]
    assert str(world.metrics.of_pods("depth", [world.get("a")])["default/a"].value) == "1"


def test_a_shared_load_is_split_among_the_ready_pods_of_a_controller(world: World) -> None:
    world.restart(metric_resolution=1.0)
    load = find_profiles(cpu="shared 900m for 20s, 100m")

    def add(name: str, **more: str) -> None:
        annotations = load["annotations"] | find_profiles(**more)["annotations"]
        pod = world.pod(name, annotations=annotations)
        world.store.update(pod.with_metadata(owner_references=[OWNER]))

    add("a")
    world.go(4)
    assert report_usage(world, "a") == ["900m"]
    add("b")
    add("late", outcome="never-ready")
    world.go(4)
    assert report_usage(world, "a", "b", "late") == ["450m", "450m", "0"]
    world.go(14)
    assert report_usage(world, "a", "b", "late") == ["50m", "50m", "0"]


def test_a_silent_node_has_no_figures_soon(world: World) -> None:
    world.restart(metric_resolution=1.0)
    world.pod("a")
    world.go(3)
    key = world.io.keys.reported("node-1")
    assert 2500 < world.io.execute("PTTL", key) <= 3500


def test_a_simulator_may_report_nothing(world: World) -> None:
    world.restart(metric_resolution=0.0)
    world.pod("a")
    world.go(3)
    assert report_usage(world, "a") == [None]
