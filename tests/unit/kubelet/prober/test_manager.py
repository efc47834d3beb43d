"""The workers of all probes, with a clock that is stepped and prepared results."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, cast

from prometheus_client import CollectorRegistry

from kcm.api.core_v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodStatus,
    Probe,
)
from kcm.kubelet.prober.manager import (
    MAX_PROBES,
    MAX_PROBES_OF_NAMESPACE,
    MAX_PROBES_OF_POD,
    ProbeManager,
)
from kcm.kubelet.prober.metrics import ProbeMetrics
from kcm.kubelet.prober.state import (
    ProbedContainer,
    ProbeError,
    ProbeKind,
    ProbeOutcome,
    ProbeResult,
    ProbeResults,
    ProbeRunner,
    ProbeUpdate,
)
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.reconcile.plan import Event
from kcm.testing import builders
from kcm.testing.clock import FakeClock

OK, FAILED = ProbeResult(ProbeOutcome.SUCCESS), ProbeResult(ProbeOutcome.FAILURE, "no")


class Inline(Executor):
    """Runs submitted functions at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class Half:
    """Returns 0.5 instead of a random number."""

    def random(self) -> float:
        return 0.5


class Probing:
    """A probe manager with one pod."""

    def __init__(
        self,
        *answers: ProbeResult | Exception,
        executor: Executor | None = None,
        **probes: Any,
    ) -> None:
        self.clock = FakeClock()
        self.answers = list(answers)
        self.probed: list[float] = []
        self.updates: list[tuple[ProbeKind, ProbeUpdate]] = []
        self.events: list[tuple[str, str]] = []
        self.pod = builders.pod(containers=[builders.container(**probes)])
        self.pod = self.pod.with_metadata(name="p")
        self.status: PodStatus | None = build_running_status()
        results = {kind: ProbeResults(self._record_update(kind)) for kind in ProbeKind}
        self.manager = ProbeManager(
            cast("ProbeRunner", self),  # makes the probes
            lambda _: self.status,
            results,
            clock=self.clock,
            recorder=KubeletEventRecorder(self, "n1"),
            metrics=ProbeMetrics(CollectorRegistry()),
            executor=executor or Inline(),
            rng=cast("random.Random", Half()),  # all that is asked of it
        )

    def record(self, event: Event, component: str, host: str = "") -> None:
        self.events.append((event.reason, event.message))

    def _record_update(self, kind: ProbeKind) -> Callable[[ProbeUpdate], object]:
        return lambda update: self.updates.append((kind, update))

    def probe(self, subject: ProbedContainer, status: PodStatus, container_id: str) -> ProbeResult:
        self.probed.append(self.clock.monotonic())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def run(self, seconds: float) -> None:
        until = self.clock.monotonic() + seconds
        while True:
            wait = self.manager.run_due()
            left = until - self.clock.monotonic()
            self.clock.step(min(wait, left))
            if wait > left:
                return

    def list_updates(self) -> list[tuple[str, str]]:
        return [(kind.value, update.verdict.value) for kind, update in self.updates]


def build_running_status(id_: str = "process://1", *, started: bool = True) -> PodStatus:
    state = ContainerState(running=ContainerStateRunning(started_at=builders.START))
    status = ContainerStatus(name="c", container_id=id_, state=state, started=started)
    return PodStatus(phase="Running", container_statuses=[status])


def update_status(probing: Probing, pod: Pod | None = None) -> tuple[bool | None, bool]:
    assert probing.status is not None
    status = probing.manager.update_pod_status(pod or probing.pod, probing.status)
    assert status.container_statuses
    return status.container_statuses[0].started, status.container_statuses[0].ready


def test_probes_come_every_period_after_a_random_part_of_the_first() -> None:
    probing = Probing(OK, liveness_probe=Probe(period_seconds=4))
    probing.manager.add_pod(probing.pod)
    probing.run(15)
    assert probing.probed == [2.0, 6.0, 10.0, 14.0]


def test_a_kubelet_that_runs_for_long_probes_new_pods_at_once() -> None:
    probing = Probing(OK, liveness_probe=Probe(period_seconds=4))
    probing.clock.step(100)
    probing.manager.add_pod(probing.pod)
    probing.run(1)
    assert probing.probed == [100.0]


def test_a_container_is_ready_once_its_probe_says_so_and_unready_after_three_failures() -> None:
    probing = Probing(OK, FAILED, readiness_probe=Probe(period_seconds=1))
    probing.manager.add_pod(probing.pod)
    assert update_status(probing) == (True, False)
    probing.run(1)
    assert update_status(probing) == (True, True)
    probing.run(4)
    assert update_status(probing) == (True, False)
    assert probing.list_updates() == [
        ("Readiness", "failed"), ("Readiness", "successful"), ("Readiness", "failed"),
    ]  # fmt: skip
    assert set(probing.events) == {("Unhealthy", "Readiness probe failed: no")}


def test_a_status_that_waits_for_readiness_has_it_probed_at_once() -> None:
    probing = Probing(FAILED, OK, readiness_probe=Probe(period_seconds=30))
    probing.clock.step(100)
    probing.manager.add_pod(probing.pod)
    probing.run(1)
    assert update_status(probing) == (True, False)
    probing.run(1)
    assert update_status(probing) == (True, True)
    assert probing.probed == [100.0, 101.0]


def test_a_failed_liveness_probe_is_told_once_and_waits_for_the_next_container() -> None:
    probing = Probing(FAILED, liveness_probe=Probe(period_seconds=1, failure_threshold=2))
    probing.manager.add_pod(probing.pod)
    probing.run(10)
    assert len(probing.probed) == 2
    assert probing.manager.liveness("1") is False
    probing.status = build_running_status("process://2")
    probing.run(1)
    assert probing.manager.liveness("1") is None
    assert probing.manager.liveness("2") is True


def test_a_container_has_started_once_its_startup_probe_succeeds() -> None:
    probing = Probing(FAILED, OK, startup_probe=Probe(period_seconds=1))
    probing.status = build_running_status(started=False)
    assert update_status(probing) == (True, True)  # nobody probes it
    probing.manager.add_pod(probing.pod)
    assert update_status(probing) == (False, False)
    probing.run(1)
    assert update_status(probing) == (False, False)
    probing.run(1)
    assert update_status(probing) == (True, True)


def test_a_probe_that_cannot_be_made_changes_nothing_and_is_told() -> None:
    probing = Probing(ProbeError("no grpc"), liveness_probe=Probe(period_seconds=1))
    probing.manager.add_pod(probing.pod)
    probing.run(5)
    assert probing.list_updates() == [("Liveness", "successful")]
    text = "Liveness probe errored and resulted in unknown state: no grpc"
    assert set(probing.events) == {("Unhealthy", text)}


def test_a_warning_counts_as_success() -> None:
    probing = Probing(ProbeResult(ProbeOutcome.WARNING, "elsewhere"), readiness_probe=Probe())
    probing.manager.add_pod(probing.pod)
    probing.run(10)
    assert update_status(probing) == (True, True)
    assert probing.events[0] == ("ProbeWarning", "Readiness probe warning: elsewhere")


def test_what_fails_unexpectedly_is_tried_again() -> None:
    probing = Probing(ValueError("bug"), OK, readiness_probe=Probe(period_seconds=1))
    probing.manager.add_pod(probing.pod)
    probing.run(3)
    assert update_status(probing) == (True, True)


def test_workers_end_with_their_pod() -> None:
    probing = Probing(OK, liveness_probe=Probe(), readiness_probe=Probe(), startup_probe=Probe())
    manager = probing.manager
    manager.add_pod(probing.pod)
    manager.add_pod(probing.pod)
    assert len(manager) == 3
    manager.stop_liveness_and_startup(probing.pod)
    assert len(manager) == 1
    manager.cleanup({probing.pod.uid or ""})
    assert len(manager) == 1
    manager.cleanup(set())
    assert len(manager) == 0
    manager.add_pod(probing.pod)
    manager.remove_pod(probing.pod)
    probing.run(30)
    assert probing.probed == []


def test_workers_end_when_their_pod_is_done() -> None:
    probing = Probing(OK, liveness_probe=Probe())
    probing.manager.add_pod(probing.pod)
    probing.status = PodStatus(phase="Succeeded")
    probing.run(10)
    assert len(probing.manager) == 0


def test_init_containers_are_ready_when_they_have_succeeded_and_sidecars_as_probed() -> None:
    side = builders.container("side", restart_policy="Always", readiness_probe=Probe())
    pod = builders.pod(init_containers=[builders.container("first"), side])
    done = ContainerState(terminated=ContainerStateTerminated(exit_code=0))
    runs = ContainerState(running=ContainerStateRunning(started_at=builders.START))
    status = PodStatus(
        init_container_statuses=[
            ContainerStatus(name="first", state=done),
            ContainerStatus(name="side", state=runs, container_id="process://2"),
        ]
    )
    probing = Probing(OK)
    probing.manager.add_pod(pod)
    statuses = probing.manager.update_pod_status(pod, status).init_container_statuses
    assert statuses
    assert [(one.started, one.ready) for one in statuses] == [(False, True), (True, False)]


class Waiting(Executor):
    """An executor whose threads are all busy until a test lets them go on."""

    def __init__(self) -> None:
        self.tasks: list[tuple[str, Callable[[], object]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        pod = args[0].probed.pod
        self.tasks.append((pod.namespace, lambda: fn(*args, **kwargs)))
        return Future()

    def of(self, namespace: str) -> int:
        return sum(1 for where, _ in self.tasks if where == namespace)


def test_probes_that_hang_leave_threads_for_other_pods_and_other_namespaces() -> None:
    threads = Waiting()
    probing = Probing(OK, executor=threads)
    probing.clock.step(100)

    def add(namespace: str, uid: str, containers: int = 1) -> None:
        probed = [
            builders.container(f"c{number}", readiness_probe=Probe(period_seconds=1))
            for number in range(containers)
        ]
        meta = {"name": uid, "namespace": namespace, "uid": uid}
        probing.manager.add_pod(builders.pod(containers=probed).with_metadata(**meta))

    add("shop", "many", containers=10)
    probing.run(1)
    assert threads.of("shop") == MAX_PROBES_OF_POD
    for number in range(MAX_PROBES):
        add("shop", f"pod-{number}")
    add("bank", "other")
    probing.run(1)
    assert (threads.of("shop"), threads.of("bank")) == (MAX_PROBES_OF_NAMESPACE, 1)
    threads.tasks.pop(0)[1]()
    probing.run(1)
    assert threads.of("shop") == MAX_PROBES_OF_NAMESPACE
