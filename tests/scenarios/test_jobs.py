"""Jobs on simulated nodes, in real workers that are killed meanwhile."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from kcm.api.batch_v1 import Job, end_condition
from kcm.api.core_v1 import Pod, PodTemplateSpec
from kcm.api.scheme import BUILT_IN
from kcm.clock import RealClock
from kcm.controllers.job.pods import is_tracked
from kcm.loops import ThreadHost
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.scripting.behaviour import Pace
from kcm.simulation.simulator import Simulator
from kcm.store import Store
from kcm.testing import builders
from kcm.testing.waiting import until
from tests.chaos.cluster import Cluster
from tests.chaos.world import PODS
from tests.new_objects import strip_store_fields

pytestmark = pytest.mark.scenario
JOBS = BUILT_IN.lookup("jobs")
# Indexes whose first pods end with 1.
SCRIPT = "3=1,0; 17=1,0; 42=1,0; 59=1,0"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(workers=2)
    host = ThreadHost()
    io = RedisIO(Settings(redis_url=cluster.server.url))
    pace = Pace(start_after=0.05, start_jitter=0.1, run_for=0.3, stop_after=0.1)
    simulator = Simulator(
        Store(io), SimulatorOptions(count=3, events=False, pace=pace), RealClock()
    )
    try:
        cluster.start()
        host.run(simulator)
        yield cluster
    finally:
        host.stop()
        io.close()
        cluster.stop()


def the_job(cluster: Cluster) -> Job:
    obj = cluster.store.get(JOBS, "default/work")
    assert isinstance(obj, Job)
    return obj


def counts(cluster: Cluster) -> tuple[int, int]:
    status = the_job(cluster).status
    return status.succeeded or 0, status.failed or 0


def kill_a_child(cluster: Cluster, rng: random.Random) -> None:
    children = cluster.children()
    if children:
        try:
            rng.choice(children).send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            return


def kill_a_worker(cluster: Cluster, rng: random.Random) -> None:
    """With its children and its manager; another one comes, as from a supervisor."""
    victim = rng.choice(cluster.workers)
    for process in (victim, *victim.children(recursive=True)):
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    victim.wait()
    cluster.start()


def wait_for_successes(cluster: Cluster, number: int) -> None:
    until(lambda: counts(cluster)[0] >= number, f"{number} successes")


def work(completions: int, parallelism: int, **spec: Any) -> Job:
    template = builders.job().spec.template
    annotations = {"simulation.kcm.dev/exit-codes-by-index": SCRIPT}
    meta = template.metadata.replace(annotations=annotations, labels=None)
    job = builders.job(
        template=PodTemplateSpec(metadata=meta, spec=template.spec),
        parallelism=parallelism,
        completions=completions,
        completion_mode="Indexed",
        **spec,
    )
    bare = job.spec.template.replace(metadata=meta)
    return strip_store_fields(job.with_spec(job.spec.replace(selector=None, template=bare)))


@pytest.mark.parametrize(
    ("completions", "parallelism", "kills"),
    [(60, 10, 4), pytest.param(200, 20, 10, marks=pytest.mark.long)],
)
def test_a_job_counts_exactly_although_workers_are_killed(
    cluster: Cluster, completions: int, parallelism: int, kills: int
) -> None:
    rng = random.Random(6)
    cluster.store.create(work(completions, parallelism, backoff_limit_per_index=3))
    for round_ in range(kills):
        done = 10 * (round_ + 1)
        wait_for_successes(cluster, done)
        kill_a_worker(cluster, rng) if round_ % 2 else kill_a_child(cluster, rng)
        until(cluster.children, "children to kill")
    until(lambda: end_condition(the_job(cluster)) is not None, "the end", within=120)
    status = the_job(cluster).status
    assert [c.type for c in status.conditions or ()] == ["SuccessCriteriaMet", "Complete"]
    assert counts(cluster) == (completions, 4)
    assert status.completed_indexes == f"0-{completions - 1}"
    assert (status.active, status.ready, status.terminating) == (None, 0, 0)
    pods = [pod for pod in cluster.store.list(PODS).items if isinstance(pod, Pod)]
    phases = [pod.status.phase for pod in pods]
    assert (phases.count("Succeeded"), phases.count("Failed")) == (completions, 4)
    assert not any(is_tracked(pod) for pod in pods)
