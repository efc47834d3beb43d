"""Measures what controllers do for a client of the REST API, as requests and a watch show it.

The baselines are constants over HTTP, and scripts that store the same pods.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from bench.harness import Bench, progress
from bench.objects import deployment, job, replica_set
from bench.raw import RawStore
from bench.rest.system import (
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    RestSystem,
    describe_cpu,
    difference,
    encoded,
    rest_system,
)
from bench.rest.watch import Fields, Watch
from bench.rest.writes import running
from bench.store import stored_pods
from bench.system import SPACING
from bench.table import Row, Sample
from kcm.apimachinery.meta_v1 import KubeObject

MARKERS = 8  # status patches of pods that are sent at a time
CONSTANTS = 500  # requests; fewer take less CPU than one clock tick


def rows(bench: Bench) -> Iterator[Row]:
    with rest_system(bench) as system, Watch(system.servers.api, REPLICA_SETS) as sets:
        with Watch(system.servers.api, PODS) as pods:
            warm_up(system, sets, pods)
            yield from _replica_set_rows(system, sets, pods)
            yield _replacement_row(system, sets, pods)
            yield from _many_set_rows(system, sets, pods)
        yield _rolled_row(system)
        yield _job_row(system)


def warm_up(system: RestSystem, sets: Watch, pods: Watch) -> None:
    """Creates and deletes a small ReplicaSet, so that each process has done its first work."""
    fill(system, sets, "warm-up", 20)
    cascade(system, pods, REPLICA_SETS, "warm-up")
    system.settle()


def fill(system: RestSystem, sets: Watch, name: str, count: int) -> float:
    """Creates a ReplicaSet; returns the seconds until its status counts all of its pods."""
    system.client.reopen_idle()
    started = time.monotonic()
    system.client.ask(system.create(REPLICA_SETS, replica_set(name, count)))

    def is_filled(watch: Watch) -> bool:
        return bool(watch.status_of(name).get("replicas") == count)

    return sets.wait(is_filled, f"the {count} replicas of {name}") - started


def cascade(system: RestSystem, pods: Watch, path: str, name: str) -> float:
    """Deletes an owner; returns the seconds until all pods are gone. There must be no others."""
    system.client.reopen_idle()
    started = time.monotonic()
    system.client.ask(system.delete(path, name))
    return pods.wait(lambda watch: not watch.objects, f"the end of the pods of {name}") - started


def _replica_set_rows(system: RestSystem, sets: Watch, pods: Watch) -> Iterator[Row]:
    count, rounds = system.bench.sizes.replicas[0], system.bench.sizes.rest_rounds
    progress(f"rest: a ReplicaSet of {count} filled and deleted, {rounds} rounds")
    raw_store = RawStore(system.bench.io)
    filled, gone, raw = [], [], []
    for number in range(rounds):
        name = f"web-{number}"
        filled.append(fill(system, sets, name, count) * 1e3)
        pods.wait(lambda watch: len(watch.objects) == count, f"{count} pods on the watch")
        raw.append(raw_store.create_all(stored_pods(system.bench.store)) * 1e3)
        raw_store.clear(count)
        system.settle()
        gone.append(cascade(system, pods, REPLICA_SETS, name) * 1e3)
        system.settle()
    baseline = Sample.of(raw)
    words = "ms, pipelined SET+XADD of the same pods"
    yield Row(
        name="rest.workloads.replicaset",
        what=f"ReplicaSet 0 to {count:,}, until its status says so",
        unit="ms",
        measured=Sample.of(filled),
        baseline=baseline,
        baseline_what=words,
        bound=50 * baseline.median,
        target="50 x raw",
    )
    yield Row(
        name="rest.workloads.cascade",
        what=f"a ReplicaSet of {count:,} deleted, until its last pod is gone",
        unit="ms",
        measured=Sample.of(gone),
        baseline=baseline,
        baseline_what=words,
        bound=50 * baseline.median,
        target="50 x raw",
    )


def _replacement_row(system: RestSystem, sets: Watch, pods: Watch) -> Row:
    count, deletions = system.bench.sizes.replicas[0], system.bench.sizes.replacements
    progress(f"rest: {deletions} pods of {count} deleted and replaced")
    fill(system, sets, "web", count)
    pods.wait(lambda watch: len(watch.objects) == count, f"{count} pods on the watch")
    system.settle()
    raw_store, data = RawStore(system.bench.io), stored_pods(system.bench.store)[0]
    ours, raw = [], []
    before = system.cpu()
    for name in list(pods.objects)[:deletions]:
        ours.append(replace(system, pods, name) * 1e3)
        raw.append(raw_store.round_trip(data) * 1e3)
        time.sleep(SPACING)
    used = difference(before, system.cpu())
    raw_store.clear(1)
    cascade(system, pods, REPLICA_SETS, "web")
    return Row(
        name="rest.workloads.replace",
        what=f"one pod of {count:,} deleted: from the answer to the next one on the watch, p50",
        unit="ms",
        measured=Sample.of(ours),
        baseline=Sample.of(raw),
        baseline_what="ms, one SET+XADD script",
        bound=50,
        target="50 ms p50",
        note=describe_cpu(used, deletions),
    )


def replace(system: RestSystem, pods: Watch, name: str) -> float:
    """Deletes a pod; returns the seconds from the response until the watch shows another one."""
    wanted = pods.added + 1
    system.client.reopen_idle()
    system.client.ask(system.delete_pod(name))
    answered = time.monotonic()
    return pods.wait(lambda watch: watch.added >= wanted, f"a replacement of {name}") - answered


def _many_set_rows(system: RestSystem, sets: Watch, pods: Watch) -> Iterator[Row]:
    count, rounds = system.bench.sizes.many_sets, system.bench.sizes.rest_rounds
    progress(f"rest: {count} ReplicaSets of one pod, {rounds} rounds")
    ours, raw, cpu, syncs, raw_cpu = [], [], [], [], []
    parts: dict[str, float] = {}
    for number in range(rounds):
        system.settle()
        before, synced = system.cpu(), system.syncs()
        ours.append(count / settle_sets(system, sets, [f"r{number}-{n}" for n in range(count)]))
        system.settle()
        parts = difference(before, system.cpu())
        syncs.append(system.syncs() - synced)
        cpu.append(sum(parts.values()) * 1e3 / max(1, syncs[-1]))
        answer = json.dumps(next(iter(sets.objects.values()))).encode()
        used = system.constant_cpu()
        body = encoded(replica_set("web", 1))
        raw.append(CONSTANTS / system.constant_seconds("POST", answer, body, CONSTANTS))
        raw_cpu.append((system.constant_cpu() - used) * 1e3 / CONSTANTS)
        system.client.ask_all([system.delete(REPLICA_SETS, name) for name in list(sets.objects)])
        pods.wait(lambda watch: not watch.objects, "the end of all pods")
    baseline = Sample.of(raw)
    yield Row(
        name="rest.workloads.sets",
        what=f"{count} ReplicaSets of one pod, until each says that it has it",
        unit="/s",
        measured=Sample.of(ours),
        baseline=baseline,
        baseline_what="/s, creates answered with a constant",
        bound=0.005 * baseline.median,
        target="0.005 of the constant's rate",
        higher_is_better=True,
    )
    yield Row(
        name="rest.workloads.cpu",
        what=f"CPU of all processes for one sync, of {syncs[-1]:,}, with its writes",
        unit="ms",
        measured=Sample.of(cpu),
        baseline=Sample.of(raw_cpu),
        baseline_what="ms, of the constant's server for a request",
        bound=15,
        target="15 ms",
        note=", ".join(f"{t} {used * 1e3 / max(1, syncs[-1]):.2f}" for t, used in parts.items())
        + f"; {syncs[-1] / count:.1f} syncs a set",
    )


def settle_sets(system: RestSystem, sets: Watch, names: list[str]) -> float:
    """Creates ReplicaSets of one pod; returns the seconds until each status counts its pod."""
    requests = [system.create(REPLICA_SETS, replica_set(name, 1)) for name in names]
    system.client.reopen_idle()
    started = time.monotonic()
    system.client.ask_all(requests)

    def are_settled(watch: Watch) -> bool:
        return all(watch.status_of(name).get("replicas") == 1 for name in names)

    return sets.wait(are_settled, f"the pods of {len(names)} ReplicaSets") - started


class _Kubelet:
    """Reports each new pod as running, or as succeeded, over the REST API."""

    def __init__(self, system: RestSystem, phase: str) -> None:
        self._system = system
        self._patch = running(phase)
        self._pool = ThreadPoolExecutor(MARKERS)
        self._reports: list[Future[bytes]] = []

    def report(self, pod: Fields) -> None:
        """Submits a patch of the pod's status."""
        path = f"{PODS}/{pod['metadata']['name']}/status"
        request = self._system.patch(path, self._patch)
        self._reports.append(self._pool.submit(self._system.client.ask, request))

    def close(self) -> None:
        """Waits for all patches. Raises RuntimeError if one has failed."""
        self._pool.shutdown()
        for report in self._reports:
            report.result()


def _measure_owned(
    system: RestSystem, path: str, phase: str, measure: Callable[[Watch, int], float]
) -> Sample:
    """Returns the milliseconds of each round, while `_Kubelet` reports the pods."""
    kubelet = _Kubelet(system, phase)
    samples = []
    with (
        Watch(system.servers.api, PODS, kubelet.report) as pods,
        Watch(system.servers.api, path) as owners,
    ):
        for number in range(system.bench.sizes.rest_rounds):
            system.settle()
            samples.append(measure(owners, number) * 1e3)
            for name in list(owners.objects):
                cascade(system, pods, path, name)
        kubelet.close()
    return Sample.of(samples)


def _rolled_row(system: RestSystem) -> Row:
    count = system.bench.sizes.rolled_pods
    progress(f"rest: a Deployment of {count} rolled")

    def roll(deployments: Watch, number: int) -> float:
        name = f"web-{number}"
        system.client.ask(system.create(DEPLOYMENTS, deployment(name, count)))
        deployments.wait(lambda watch: _is_rolled(watch, name, count, 1), "the first roll-out")
        system.settle()
        containers = [{"name": "web", "image": "nginx:1.26"}]
        template = {"spec": {"template": {"spec": {"containers": containers}}}}
        system.client.reopen_idle()
        started = time.monotonic()
        system.client.ask(system.patch(f"{DEPLOYMENTS}/{name}", template))
        return deployments.wait(lambda w: _is_rolled(w, name, count, 2), "a roll-out") - started

    return _pods_row(
        system,
        name="rest.workloads.rolled",
        what=f"a Deployment of {count} gets another image, until all are of it and available",
        measured=_measure_owned(system, DEPLOYMENTS, "Running", roll),
        obj=deployment("web", count),
        count=count,
    )


def _is_rolled(watch: Watch, name: str, count: int, generation: int) -> bool:
    status = watch.status_of(name)
    counts = {status.get(key) for key in ("replicas", "updatedReplicas", "availableReplicas")}
    return counts == {count} and status.get("observedGeneration", 0) >= generation


def _job_row(system: RestSystem) -> Row:
    completions, parallelism = system.bench.sizes.job_pods
    progress(f"rest: a Job of {completions} by {parallelism}")

    def complete(jobs: Watch, number: int) -> float:
        name = f"sum-{number}"
        system.client.reopen_idle()
        started = time.monotonic()
        system.client.ask(system.create(JOBS, job(name, completions, parallelism)))
        return jobs.wait(lambda watch: _is_complete(watch, name), "the Job's end") - started

    return _pods_row(
        system,
        name="rest.workloads.job",
        what=f"a Job of {completions} by {parallelism}, pods succeeding at once",
        measured=_measure_owned(system, JOBS, "Succeeded", complete),
        obj=job("sum", completions, parallelism),
        count=completions,
    )


def _is_complete(watch: Watch, name: str) -> bool:
    conditions = watch.status_of(name).get("conditions") or ()
    return any(c["type"] == "Complete" and c["status"] == "True" for c in conditions)


def _pods_row(
    system: RestSystem, *, name: str, what: str, measured: Sample, obj: KubeObject, count: int
) -> Row:
    """Returns a row whose baseline is one constant response for each pod."""
    body = encoded(obj)
    raw = [
        system.constant_seconds("POST", body, body, count) * 1e3
        for _ in range(system.bench.sizes.rest_rounds)
    ]
    baseline = Sample.of(raw)
    return Row(
        name=name,
        what=what,
        unit="ms",
        measured=measured,
        baseline=baseline,
        baseline_what=f"ms, {count} requests answered with a constant",
        bound=150 * baseline.median,
        target="150 x the constants",
    )
