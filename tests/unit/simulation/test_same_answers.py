"""A simulated node and the kubelet's runtime manager report the same for the same pods."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kcm.api.core_v1 import ContainerStatus, Pod, PodStatus
from kcm.kubelet.environment.variables import PodLocation
from kcm.kubelet.kuberuntime.actions import ContainerHealth
from kcm.kubelet.kuberuntime.images import ImageManager, NodeImages
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.kuberuntime.results import ReasonCache
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.status.generate import StatusContext, generate_status
from kcm.kubelet.status.phase import TERMINAL
from kcm.kubelet.sync_context import SyncContext
from kcm.kubelet.volumes.volumes import PodVolumes, Volumes
from kcm.simulation.runtime import probes
from kcm.simulation.runtime.containers import NAME, Attempt
from kcm.simulation.runtime.runtime import SimulatedRuntime
from kcm.testing.clock import FakeClock
from tests.lookups import FakeLookups
from tests.unit.simulation.life import PACE, Life, pod

INIT = {"name": "prepare", "image": "i:1"}
SIDECAR = {"name": "proxy", "image": "i:1", "restartPolicy": "Always"}
# Annotations, spec, and moments (seconds) at which nothing is about to happen.
CASES: dict[str, tuple[dict[str, str], dict[str, Any], tuple[int, ...]]] = {
    "runs": ({}, {}, (8, 60)),
    "succeeds": ({}, {"restartPolicy": "Never"}, (10,)),
    "fails": ({"outcome": "fail"}, {"restartPolicy": "Never"}, (10,)),
    "fails, then succeeds": ({"exit-codes": "1,0"}, {"restartPolicy": "OnFailure"}, (20,)),
    "crashes": ({"outcome": "crash", "run-for": "0"}, {}, (8, 25, 60)),
    "is out of memory": ({"outcome": "oom", "run-for": "2s"}, {}, (12,)),
    "is never ready": ({"outcome": "never-ready"}, {}, (10,)),
    "becomes sick": ({"outcome": "unhealthy", "run-for": "60s"}, {}, (50, 75)),
    "has no image": ({"outcome": "image-pull-error"}, {}, (8,)),
    "prepares": ({}, {"initContainers": [INIT]}, (10,)),
    "prepares in vain": (
        {"outcome.prepare": "fail"},
        {"initContainers": [INIT], "restartPolicy": "Never"},
        (10,),
    ),
    "has a sidecar": ({}, {"initContainers": [SIDECAR]}, (10,)),
    "has a sidecar that crashes": (
        {"outcome.proxy": "fail", "run-for.proxy": "3s"},
        {"initContainers": [SIDECAR]},
        (12,),
    ),
}


class Real:
    """The kubelet's runtime manager, synced each second, with the simulated runtime."""

    def __init__(self, pod: Pod, folder: Path) -> None:
        self.pod = pod
        self.clock = FakeClock()
        self._began = self.clock.monotonic()
        self._runtime = SimulatedRuntime(lambda _: self.pod, self.clock, pace=PACE)
        recorder = KubeletEventRecorder(None, "n1")
        self._manager = RuntimeManager(
            self._runtime,
            recorder=recorder,
            volumes=Volumes(folder),
            lookups=FakeLookups(),
            logs_dir=folder,
            clock=self.clock,
            locate=lambda ips: PodLocation(ips, (), {}),
            health=ContainerHealth(
                lambda id_: self._health_of(id_).liveness(id_),
                lambda id_: self._health_of(id_).startup(id_),
            ),
            images=NodeImages(ImageManager(self._runtime, recorder, self.clock)),
        )
        self._reasons = ReasonCache()

    def until(self, end: float) -> None:
        while self.clock.monotonic() - self._began < end:
            view = self._manager.look_at(self.pod.uid)
            self._report(view, over=False)
            if self.pod.status.phase in TERMINAL:
                self._manager.kill_pod(self.pod, view, None, SyncContext())
                self._report(self._manager.look_at(self.pod.uid), over=True)
                return
            result = self._manager.sync_pod(self.pod, view, PodVolumes({}), SyncContext())
            self._reasons.update(self.pod.uid, result)
            self.clock.step(1)
        self._report(self._manager.look_at(self.pod.uid), over=False)

    def _health_of(self, container_id: str) -> ContainerHealth:
        attempt = self._runtime.attempt(container_id)
        return probes.health({container_id: attempt} if attempt else {}, self._now())

    def _now(self) -> float:
        return self.clock.now().timestamp()

    def _attempts(self, view: PodView) -> dict[str, Attempt]:
        attempts = {one.id: self._runtime.attempt(one.id) for one in view.containers}
        return {id_: attempt for id_, attempt in attempts.items() if attempt is not None}

    def _report(self, view: PodView, *, over: bool) -> None:
        newest = {one.name: one for one in reversed(list(self._attempts(view).values()))}
        context = StatusContext(
            ("192.0.2.1",),
            NAME,
            lambda name: self._reasons.get(self.pod.uid, name),
            probes.build_apply_probes(newest.get, self._now()),
        )
        status = generate_status(self.pod, self.pod.status, view, context, over=over)
        self.pod = self.pod.with_status(status)


def summarize(status: PodStatus) -> dict[str, Any]:
    """Returns the parts of a status that do not depend on times and ids."""
    containers = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    return {
        "phase": status.phase,
        "containers": {one.name: tuple(of_container(one)) for one in containers},
        "conditions": {c.type: (c.status, c.reason) for c in status.conditions or ()},
    }


def of_container(status: ContainerStatus) -> Iterator[object]:
    yield from (status.ready, status.started, status.restart_count, status.image_id)
    for state in (status.state, status.last_state):
        if state and state.waiting:
            yield ("waiting", state.waiting.reason, state.waiting.message)
        if state and state.running:
            yield "running"
        if state and state.terminated:
            yield (state.terminated.exit_code, state.terminated.reason)


@pytest.mark.parametrize("name", CASES)
def test_both_report_the_same(name: str, tmp_path: Path) -> None:
    annotations, spec, moments = CASES[name]
    life, real = Life(pod(annotations, **spec)), Real(pod(annotations, **spec), tmp_path)
    for moment in moments:
        life.until(moment)
        real.until(moment)
        life.step(moment)
        assert summarize(life.pod.status) == summarize(real.pod.status), moment
