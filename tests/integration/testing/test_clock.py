"""The time of a control plane, in the hands of a test."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kcm.testing import ControlPlane, UnsettledError
from kcm.testing.control_plane.assembly import Assembly
from tests.integration.testing import repeating
from tests.integration.testing.objects import cron_job, deployment, job, pod


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(seed=1, nodes=2) as started:
        yield started


def names(plane: ControlPlane, kind: str) -> list[str]:
    return [one["metadata"]["name"] for one in plane.list(kind)]


def test_the_time_stands_still_until_it_is_moved(plane: ControlPlane) -> None:
    before = plane.clock.now
    plane.apply(deployment("web"))
    plane.settle()
    assert plane.clock.now == before
    assert plane.clock.frozen
    rest = plane.clock.advance("90s")
    assert rest.at == plane.clock.now == before + timedelta(seconds=90)


def test_a_year_of_a_cron_job_has_twelve_jobs_at_their_times(plane: ControlPlane) -> None:
    plane.apply(cron_job("report", "0 0 1 * *", history=20))
    rest = plane.clock.to("2031-01-01T00:00:00.5Z")
    assert len(names(plane, "jobs")) == 12
    starts = {one["status"]["startTime"] for one in plane.list("jobs")}
    assert starts == {f"2030-{month:02}-01T00:00:00Z" for month in range(2, 13)} | {
        "2031-01-01T00:00:00Z"
    }
    assert rest.at.isoformat() == "2031-01-01T00:00:00.500000+00:00"


def test_a_silent_node_is_unreachable_after_its_grace_period_and_emptied_after_five_minutes(
    plane: ControlPlane,
) -> None:
    plane.apply(deployment("web", replicas=4))
    plane.wait_for("deployment/web", condition="Available")
    plane.clock.advance("1m")
    stopped = plane.clock.now
    silence = {"name": "node-1", "annotations": {"simulation.kcm.dev/state": "silent"}}
    plane.apply({"apiVersion": "v1", "kind": "Node", "metadata": silence})
    plane.eventually(lambda: ready_of(plane, "node-1") == "Unknown", within="2m")
    noticed = (plane.clock.now - stopped).total_seconds()
    assert 40 <= noticed <= 60, "the grace period is 50 s, heartbeats come every 10 s"
    plane.eventually(lambda: not on_node(plane, "node-1"), within="10m")
    emptied = (plane.clock.now - stopped).total_seconds()
    assert noticed + 300 <= emptied <= noticed + 320
    assert len(on_node(plane, "node-2")) == 4


def ready_of(plane: ControlPlane, node: str) -> str:
    conditions = plane.get(f"node/{node}")["status"]["conditions"]
    return str(next(c["status"] for c in conditions if c["type"] == "Ready"))


def on_node(plane: ControlPlane, node: str) -> list[dict[str, Any]]:
    pods = plane.list("pods")
    return [
        one
        for one in pods
        if one["spec"].get("nodeName") == node and "deletionTimestamp" not in one["metadata"]
    ]


def test_a_finished_job_is_deleted_when_its_ttl_is_over(plane: ControlPlane) -> None:
    plane.apply(job("once", ttl=3600, run_for="30s"))
    plane.wait_for("job/once", condition="Complete", within="1m")
    plane.clock.advance("59m")
    assert names(plane, "jobs") == ["once"]
    plane.clock.advance("2m")
    assert names(plane, "jobs") == []


def test_a_crash_loop_backs_off_by_the_clock(plane: ControlPlane) -> None:
    plane.apply(
        pod("broken", {"simulation.kcm.dev/outcome": "fail", "simulation.kcm.dev/run-for": "1s"})
    )
    restarts = []
    for _ in range(4):
        plane.clock.advance("5m")
        restarts.append(plane.get("pod/broken")["status"]["containerStatuses"][0]["restartCount"])
    assert restarts[0] == 5, "after 10, 20, 40, 80 and 160 s"
    assert restarts[3] <= restarts[0] + 3, "after that every five minutes"


def test_a_token_expires_by_the_clock(plane: ControlPlane) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    plane.settle()
    answer = plane.objects.client.post(path, json={**body, "spec": {"expirationSeconds": 600}})
    token = answer.json()["status"]["token"]
    as_account = {"authorization": f"Bearer {token}"}
    get = plane.objects.client.get
    assert get("/api", headers=as_account).status_code == 200
    plane.clock.advance("12m")
    assert get("/api", headers=as_account).status_code == 401


def test_settle_says_what_is_pending_and_when(plane: ControlPlane) -> None:
    plane.apply(cron_job("report", "30 4 * * *"))
    plane.clock.advance("1h")
    rest = plane.settle()
    assert rest.next is not None
    assert rest.next.what == "sync of cronjob-controller default/report"
    assert rest.next.when.isoformat(timespec="minutes") == "2030-01-01T04:30+00:00"
    assert "next: 2030-01-01T04:30:00Z sync of cronjob-controller" in str(rest)


def test_what_never_comes_to_rest_is_named() -> None:
    with ControlPlane(nodes=0, seed=1) as plane:
        engine = plane._engine
        assert isinstance(engine, Assembly)
        agenda = engine.agenda
        count = itertools.count()

        def fight(now: datetime) -> datetime:
            data = {"holder": str(next(count))}
            plane.apply({**repeating.CONTESTED, "data": data})
            return now

        agenda.add(fight)
        with pytest.raises(UnsettledError, match="Most often changed: configmaps default/contest"):
            plane.settle(timeout="1s")
        agenda.remove(fight)


def test_the_time_goes_on_from_where_it_stands() -> None:
    with ControlPlane(nodes=1) as plane:
        plane.clock.freeze()
        plane.clock.advance("24h")
        ahead = plane.clock.now
        plane.clock.run()
        plane.apply(deployment("web"))
        plane.wait_for("deployment/web", condition="Available")
        made = plane.get("deployment/web")["metadata"]["creationTimestamp"]
        assert ahead - timedelta(seconds=1) <= datetime.fromisoformat(made) <= plane.clock.now
        assert not plane.clock.frozen


@pytest.mark.parametrize(
    ("move", "message"),
    [
        (lambda clock: clock.advance("-1s"), "invalid|cannot go back"),
        (lambda clock: clock.advance(-1), "the clock cannot go back by -1"),
        (lambda clock: clock.to("2029-12-31T00:00Z"), "cannot go back to 2029-12-31T00:00Z"),
        (lambda clock: clock.to("2031-01-01T00:00"), "has no time zone: write .*Z"),
        (lambda clock: clock.advance("soon"), "soon"),
    ],
)
def test_a_time_that_cannot_be_is_refused(plane: ControlPlane, move: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        move(plane.clock)


def test_a_run_with_a_seed_is_repeated_to_the_last_byte() -> None:
    first = repeating.run(seed=3)
    assert repeating.run(seed=3) == first
    assert len(first) > 500
    other = repeating.run(seed=4)
    assert other != first
    assert {one.uid for one in other}.isdisjoint(one.uid for one in first)


@pytest.mark.long
def test_another_process_repeats_the_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.testing.repeating", "3"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert printed.stdout.splitlines()[-1] == repeating.digest(repeating.run(seed=3))


@pytest.mark.long
@pytest.mark.timeout(1200)  # a run takes some 3 s
def test_a_hundred_runs_agree() -> None:
    first = repeating.run(seed=5)
    assert all(repeating.run(seed=5) == first for _ in range(99))
