"""Measures whether a pod of many costs what a pod of few costs."""

from __future__ import annotations

from collections.abc import Iterator

from bench.harness import Bench, progress
from bench.rest.system import PODS, REPLICA_SETS, RestSystem, rest_system
from bench.rest.watch import Watch
from bench.rest.workloads import cascade, fill, warm_up
from bench.table import Row, Sample


def rows(bench: Bench) -> Iterator[Row]:
    few, many = bench.sizes.growth_pods
    progress(f"rest: ReplicaSets of {few} and of {many} pods")
    with (
        rest_system(bench) as system,
        Watch(system.servers.api, REPLICA_SETS) as sets,
        Watch(system.servers.api, PODS) as pods,
    ):
        warm_up(system, sets, pods)
        baseline = _ms_per_pod(system, sets, pods, few)
        measured = _ms_per_pod(system, sets, pods, many)
    for number, (verb, words) in enumerate(
        (("filled", "ReplicaSet from 0 to {:,}"), ("deleted", "cascade of {:,}"))
    ):
        yield Row(
            name=f"rest.growth.{verb}",
            what=f"{words.format(many)}, time for a pod",
            unit="ms",
            measured=measured[number],
            baseline=baseline[number],
            baseline_what=f"ms, with {few:,} pods",
            bound=3 * baseline[number].median,
            target=f"3 x that of {few:,}; linear is 1",
        )


def _ms_per_pod(system: RestSystem, sets: Watch, pods: Watch, count: int) -> tuple[Sample, Sample]:
    """Returns the milliseconds for a pod that is made, and for one that is deleted."""
    made, gone = [], []
    for number in range(system.bench.sizes.rest_rounds):
        name = f"web-{count}-{number}"
        made.append(fill(system, sets, name, count) * 1e3 / count)
        pods.wait(lambda watch: len(watch.objects) == count, f"{count} pods on the watch")
        system.settle()
        gone.append(cascade(system, pods, REPLICA_SETS, name) * 1e3 / count)
        system.settle()
    return Sample.of(made), Sample.of(gone)
