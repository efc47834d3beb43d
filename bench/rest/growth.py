"""Measures whether a pod of many costs what a pod of few costs, and what more processes bring."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.harness import Bench, progress
from bench.rest.system import PODS, REPLICA_SETS, RestSystem, rest_system
from bench.rest.watch import Watch
from bench.rest.workloads import cascade, fill, replace, settle_sets, warm_up
from bench.system import SPACING
from bench.table import Row, Sample

_MOST = 3  # times what a pod costs among the fewest; 1 is linear
_LEAST = 0.7  # of the rate with the fewest children: more must not be in each other's way


@dataclass
class _Times:
    """The milliseconds of each round with one number of pods."""

    filled: list[float] = field(default_factory=list)  # for a pod
    replaced: list[float] = field(default_factory=list)
    deleted: list[float] = field(default_factory=list)  # for a pod


_WHAT = {
    "filled": "ReplicaSet from 0 to {:,}, time for a pod",
    "replaced": "one pod of {:,} deleted: from the answer to the next one on the watch, p50",
    "deleted": "cascade of {:,}, time for a pod",
}


def by_pods(bench: Bench) -> Iterator[Row]:
    """Measures ReplicaSets of growing size, each against the smallest."""
    sizes = bench.sizes
    times = {}
    with (
        rest_system(bench) as system,
        Watch(system.servers.api, REPLICA_SETS) as sets,
        Watch(system.servers.api, PODS) as pods,
    ):
        warm_up(system, sets, pods)
        for count, rounds in zip(sizes.growth_pods, sizes.growth_rounds, strict=True):
            progress(f"rest: a ReplicaSet of {count} pods, {rounds} rounds")
            times[count] = _measure(system, sets, pods, count, rounds)
    few = sizes.growth_pods[0]
    for count in sizes.growth_pods[1:]:
        for step, what in _WHAT.items():
            baseline = Sample.of(getattr(times[few], step))
            yield Row(
                name=f"rest.growth.{step}.{count}",
                what=what.format(count),
                unit="ms",
                measured=Sample.of(getattr(times[count], step)),
                baseline=baseline,
                baseline_what=f"ms, with {few:,} pods",
                bound=_MOST * baseline.median,
                target=f"{_MOST} x that of {few:,}",
            )


def _measure(system: RestSystem, sets: Watch, pods: Watch, count: int, rounds: int) -> _Times:
    times = _Times()
    for number in range(rounds):
        name = f"web-{count}-{number}"
        times.filled.append(fill(system, sets, name, count) * 1e3 / count)
        pods.wait(lambda watch: len(watch.objects) == count, f"{count} pods on the watch")
        system.settle()
        for pod in list(pods.objects)[: system.bench.sizes.replacements]:
            times.replaced.append(replace(system, pods, pod) * 1e3)
            time.sleep(SPACING)
        times.deleted.append(cascade(system, pods, REPLICA_SETS, name) * 1e3 / count)
        system.settle()
    return times


def by_children(bench: Bench) -> Iterator[Row]:
    """Measures many small ReplicaSets with more children in the worker's pool."""
    few, *more = bench.sizes.pool_children
    baseline = _measure_rate(bench, few)
    for children in more:
        yield Row(
            name=f"rest.children.{children}",
            what=f"{bench.sizes.many_sets} ReplicaSets of one pod, {children} worker children",
            unit="/s",
            measured=_measure_rate(bench, children),
            baseline=baseline,
            baseline_what=f"/s, with {few}",
            bound=_LEAST * baseline.median,
            target=f"{_LEAST} of the rate with {few}",
            higher_is_better=True,
        )


def _measure_rate(bench: Bench, children: int) -> Sample:
    """Returns how many ReplicaSets settle in a second, of each round."""
    count, rounds = bench.sizes.many_sets, bench.sizes.rest_rounds
    rates = []
    with (
        rest_system(bench, "--pool=prefork", f"--concurrency={children}") as system,
        Watch(system.servers.api, REPLICA_SETS) as sets,
        Watch(system.servers.api, PODS) as pods,
    ):
        warm_up(system, sets, pods)
        for number in range(rounds):
            names = [f"c{children}-{number}-{n}" for n in range(count)]
            rates.append(count / settle_sets(system, sets, names))
            system.client.ask_all([system.delete(REPLICA_SETS, name) for name in names])
            pods.wait(lambda watch: not watch.objects, "the end of all pods")
            system.settle()
    return Sample.of(rates)
