"""A CronJob in real workers, over a restart of everything."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from kcm.api.batch_v1 import CronJob, Job
from kcm.api.scheme import BUILT_IN
from kcm.testing.builders import cron_job
from kcm.testing.waiting import let_time_pass, until
from tests.chaos.cluster import Cluster
from tests.new_objects import strip_store_fields

# Two minutes of real time: `make scenarios` runs it, `make test` does not.
pytestmark = [pytest.mark.scenario, pytest.mark.long]
JOBS, CRON_JOBS = BUILT_IN.lookup("jobs"), BUILT_IN.lookup("cronjobs")


def jobs(cluster: Cluster) -> list[Job]:
    jobs_of_cluster = [job for job in cluster.store.list(JOBS).items if isinstance(job, Job)]
    return sorted(jobs_of_cluster, key=lambda job: job.name)


def minutes(cluster: Cluster) -> list[int]:
    return [int(job.name.rpartition("-")[2]) for job in jobs(cluster)]


def active(cluster: Cluster) -> list[str]:
    """Returns the names of the jobs that the CronJob's status lists."""
    owner = cluster.store.get(CRON_JOBS, "default/tick")
    assert isinstance(owner, CronJob)
    return [ref.name or "" for ref in owner.status.active or ()]


def stop_everything(cluster: Cluster) -> None:
    """At once, as when the power goes; the server comes back on its file."""
    roots = [*cluster.workers, *cluster.beats]
    for process in [p for root in roots for p in (root, *root.children(recursive=True))]:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    psutil.wait_procs(roots, timeout=5)
    cluster.restart_server()


def test_each_minute_gets_one_job_over_a_restart_of_everything() -> None:
    cluster = Cluster(workers=1)
    try:
        cluster.start()
        new_cron_job = cron_job("tick", "* * * * *", starting_deadline_seconds=30)
        cluster.store.create(strip_store_fields(new_cron_job))
        until(lambda: len(jobs(cluster)) == 1, "the first job", within=75)
        first = jobs(cluster)[0]
        stop_everything(cluster)
        let_time_pass(2, "everything is away")
        cluster.start()
        until(lambda: len(jobs(cluster)) == 2, "the second job", within=80)
        until(lambda: len(active(cluster)) == 2, "the second job in the status")
        one, two = minutes(cluster)
        assert two == one + 1
        started = first.metadata.creation_timestamp
        assert started is not None
        assert started.timestamp() - 60 * one <= 3
        assert active(cluster) == [j.name for j in jobs(cluster)]
    finally:
        cluster.stop()
