"""Measures creates, status patches and deletes of pods that belong to no controller."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from bench.harness import Bench, progress
from bench.objects import web_pod
from bench.rest.client import CONNECTIONS
from bench.rest.system import (
    PODS,
    RestSystem,
    describe_cpu,
    difference,
    encoded,
    rest_system,
)
from bench.rest.watch import Watch
from bench.table import Row, Sample

VERBS = {"create": "POST", "status": "PATCH", "delete": "DELETE"}
_WHAT = {"create": "creates", "status": "status patches", "delete": "deletes"}
_SHARE = 0.02  # the least share of the constant's rate; a quiet machine reaches three times that
_READY = ("Initialized", "Ready", "ContainersReady", "PodScheduled")


def running(phase: str = "Running") -> dict[str, object]:
    """Returns the patch by which a kubelet reports that a pod runs, or has succeeded."""
    ready = "True" if phase == "Running" else "False"
    when = "2026-01-01T00:00:00Z"
    conditions = [{"type": t, "status": ready, "lastTransitionTime": when} for t in _READY]
    return {"status": {"phase": phase, "startTime": when, "conditions": conditions}}


def rows(bench: Bench) -> Iterator[Row]:
    with rest_system(bench) as system, Watch(system.servers.api, PODS) as pods:
        yield from _Writes(system, pods).rows()


class _Writes:
    """The rounds of one system: the rates of both servers by verb, and the CPU time per write."""

    def __init__(self, system: RestSystem, pods: Watch) -> None:
        self._system = system
        self._pods = pods
        self._count = system.bench.sizes.rest_writes
        self._ours: dict[str, list[float]] = {verb: [] for verb in VERBS}
        self._raw: dict[str, list[float]] = {verb: [] for verb in VERBS}
        self._cpu: list[float] = []
        self._raw_cpu: list[float] = []
        self._parts: dict[str, float] = {}
        self._of_verb: dict[str, dict[str, float]] = {}  # CPU seconds by title, in the last round

    def rows(self) -> Iterator[Row]:
        rounds, count = self._system.bench.sizes.rest_rounds, self._count
        progress(f"rest: {count} creates, patches, deletes, {CONNECTIONS} at once, {rounds} rounds")
        self._system.settle()
        for number in range(rounds):
            self._round([f"raw-{number}-{n}" for n in range(count)])
        yield from (self._rate_row(verb) for verb in VERBS)
        yield self._cpu_row()

    def _round(self, names: Sequence[str]) -> None:
        before = self._system.cpu()
        self._write("create", names, lambda pods: len(pods.objects) == len(names))
        self._write("status", names, _all_run)
        answer = json.dumps(self._pods.objects[names[0]]).encode()
        self._write("delete", names, lambda pods: not pods.objects)
        self._parts = difference(before, self._system.cpu())
        self._cpu.append(self._per_write(sum(self._parts.values())))
        self._constants(answer)

    def _write(self, verb: str, names: Sequence[str], goal: Callable[[Watch], bool]) -> None:
        before = self._system.cpu()
        seconds = self._system.client.ask_all([self._request(verb, name) for name in names])
        self._ours[verb].append(len(names) / seconds)
        self._pods.wait(goal, f"{len(names)} {_WHAT[verb]} on the watch")
        self._system.settle()
        self._of_verb[verb] = difference(before, self._system.cpu())

    def _request(self, verb: str, name: str) -> bytes:
        if verb == "create":
            pod = web_pod("raw").with_metadata(name=name, generate_name="")
            return self._system.create(PODS, pod)
        if verb == "status":
            return self._system.patch(f"{PODS}/{name}/status", running())
        return self._system.delete_pod(name)

    def _constants(self, answer: bytes) -> None:
        before = self._system.constant_cpu()
        body = encoded(web_pod("raw"))
        for verb, method in VERBS.items():
            seconds = self._system.constant_seconds(method, answer, body, self._count)
            self._raw[verb].append(self._count / seconds)
        self._raw_cpu.append(self._per_write(self._system.constant_cpu() - before))

    def _per_write(self, seconds: float) -> float:
        return seconds * 1e3 / (self._count * len(VERBS))

    def _rate_row(self, verb: str) -> Row:
        baseline = Sample.of(self._raw[verb])
        return Row(
            name=f"rest.writes.{verb}",
            what=f"{self._count:,} {_WHAT[verb]} of pods, {CONNECTIONS} connections",
            unit="/s",
            measured=Sample.of(self._ours[verb]),
            baseline=baseline,
            baseline_what="/s, the same bytes as a constant",
            bound=_SHARE * baseline.median,
            target=f"{_SHARE} of the constant's rate",
            higher_is_better=True,
            note=describe_cpu(self._of_verb[verb], self._count),
        )

    def _cpu_row(self) -> Row:
        baseline = Sample.of(self._raw_cpu)
        each = {title: self._per_write(seconds) for title, seconds in self._parts.items()}
        return Row(
            name="rest.writes.cpu",
            what="CPU of all processes for one of these writes",
            unit="ms",
            measured=Sample.of(self._cpu),
            baseline=baseline,
            baseline_what="ms, of the constant's server for a request",
            bound=8,
            target="8 ms",
            note=", ".join(f"{title} {ms:.2f}" for title, ms in each.items()),
        )


def _all_run(pods: Watch) -> bool:
    return all(pod["status"].get("phase") == "Running" for pod in pods.objects.values())
