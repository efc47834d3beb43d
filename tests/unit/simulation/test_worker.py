from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from kcm.simulation.scripting import scripts
from tests.unit.simulation.life import Life, pod

PROBE = {"httpGet": {"port": 80}, "initialDelaySeconds": 3}


def containers(*names: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": name, "image": "i:1", **fields} for name in names]


SIDECAR = {"name": "proxy", "image": "i:1", "restartPolicy": "Always"}
SICK = ("Unhealthy", "Killing")
PREPARE = {"name": "prepare", "image": "i:1"}

# Annotations, spec, and what kubectl shows when.
TIMELINES: Mapping[str, tuple[dict[str, str], dict[str, Any], list[tuple[float, str]]]] = {
    "a pod runs and stays": ({}, {}, [(0, "0/1 ContainerCreating"), (1, "1/1 Running")]),
    "a pod that is not to be restarted succeeds": (
        {},
        {"restartPolicy": "Never"},
        [(0, "0/1 ContainerCreating"), (1, "1/1 Running"), (3, "0/1 Completed")],
    ),
    "a slow start": (
        {"start-after": "5s", "ready-after": "2s"},
        {},
        [(0, "0/1 ContainerCreating"), (5, "0/1 Running"), (7, "1/1 Running")],
    ),
    "a readiness probe delays readiness": (
        {},
        {"containers": containers("main", readinessProbe=PROBE)},
        [(0, "0/1 ContainerCreating"), (1, "0/1 Running"), (4, "1/1 Running")],
    ),
    "never started": ({"outcome": "never-start"}, {}, [(0, "0/1 ContainerCreating")]),
    "a failure that is final": (
        {"outcome": "fail", "run-for": "4s"},
        {"restartPolicy": "Never"},
        [(0, "0/1 ContainerCreating"), (1, "1/1 Running"), (5, "0/1 Error")],
    ),
    "killed for memory": (
        {"outcome": "oom"},
        {"restartPolicy": "Never"},
        [(0, "0/1 ContainerCreating"), (1, "1/1 Running"), (3, "0/1 OOMKilled")],
    ),
    "a crash loop: at once, then after 10 s, then after 20 s": (
        {"outcome": "crash", "run-for": "0"},
        {},
        [
            (0, "0/1 ContainerCreating"),
            (1, "0/1 Error"),
            (3, "0/1 CrashLoopBackOff"),
            (12, "0/1 Error"),
            (13, "0/1 CrashLoopBackOff"),
            (32, "0/1 Error"),
            (33, "0/1 CrashLoopBackOff"),
        ],
    ),
    "two failures, then success": (
        {"exit-codes": "1,1,0", "run-for": "1s"},
        {"restartPolicy": "OnFailure"},
        [
            (0, "0/1 ContainerCreating"),
            (1, "1/1 Running"),
            (2, "0/1 Error"),
            (3, "1/1 Running"),
            (4, "0/1 Error"),
            (5, "0/1 CrashLoopBackOff"),
            (14, "1/1 Running"),
            (15, "0/1 Completed"),
        ],
    ),
    "an image that is not there": (
        {"outcome": "image-pull-error"},
        {},
        [
            (0, "0/1 ContainerCreating"),
            (1, "0/1 ErrImagePull"),
            (3, "0/1 ImagePullBackOff"),
            (11, "0/1 ErrImagePull"),
            (13, "0/1 ImagePullBackOff"),
            (31, "0/1 ErrImagePull"),
            (33, "0/1 ImagePullBackOff"),
        ],
    ),
    "init containers go one after the other": (
        {},
        {"initContainers": containers("a", "b")},
        [
            (0, "0/1 Init:0/2"),
            (1.5, "0/1 Init:1/2"),
            (3, "0/1 PodInitializing"),
            (4, "1/1 Running"),
        ],
    ),
    "an init container that fails for good": (
        {"outcome.prepare": "fail"},
        {"initContainers": [PREPARE], "restartPolicy": "Never"},
        [(0, "0/1 Init:0/1"), (1.5, "0/1 Init:Error")],
    ),
    "a sidecar starts before the others and ends after them": (
        {},
        {"initContainers": [SIDECAR], "restartPolicy": "Never"},
        [
            (0, "0/2 Init:0/1"),
            (1, "1/2 PodInitializing"),
            (2, "2/2 Running"),
            (4, "1/2 Completed"),
            (5, "0/2 Completed"),
        ],
    ),
    "a failing liveness probe starts the container again, and that waits as a crash does": (
        {"outcome": "unhealthy", "run-for": "5s"},
        {},
        [
            (0, "0/1 ContainerCreating"),
            (1, "1/1 Running"),  # again from 7 and from 13 on: at once
            (19, "0/1 CrashLoopBackOff"),
            (29, "1/1 Running"),
        ],
    ),
    "past its deadline, which is told when it has ended": (
        {},
        {"activeDeadlineSeconds": 5},
        [(0, "0/1 ContainerCreating"), (1, "1/1 Running"), (6, "0/1 Completed")],
    ),
}


INCIDENTS: Mapping[str, tuple[dict[str, str], dict[str, Any], list[tuple[float, str]]]] = {
    "an exit at a moment, and another start": (
        {"exit": "2026-01-01T00:00:05.5Z 3"},
        {},
        [
            (0, "0/1 ContainerCreating"),
            (1, "1/1 Running"),
            (5.5, "0/1 Error"),
            (6.5, "1/1 Running"),
        ],
    ),
    "an exit that is final": (
        {"exit": "2026-01-01T00:00:02.5Z 3"},
        {"restartPolicy": "Never"},
        [(0, "0/1 ContainerCreating"), (1, "1/1 Running"), (2.5, "0/1 Error")],
    ),
    "killed for memory at a moment": (
        {"exit": "2026-01-01T00:00:02.5Z 137 OOMKilled"},
        {"restartPolicy": "Never"},
        [(0, "0/1 ContainerCreating"), (1, "1/1 Running"), (2.5, "0/1 OOMKilled")],
    ),
    "of two containers, one exits": (
        {"exit.other": "2026-01-01T00:00:05Z 1"},
        {"containers": containers("main", "other")},
        [(0, "0/2 ContainerCreating"), (1, "2/2 Running"), (5, "1/2 Error"), (6, "2/2 Running")],
    ),
    "an exit before the start": (
        {"exit": "2026-01-01T00:00:00.5Z 1"},
        {},
        [(0, "0/1 ContainerCreating"), (1, "1/1 Running")],
    ),
    "a readiness probe that fails": (
        {"ready": "false"},
        {},
        [(0, "0/1 ContainerCreating"), (1, "0/1 Running")],
    ),
    "a readiness probe that succeeds at once": (
        {"ready": "true", "ready-after": "20s"},
        {},
        [(0, "0/1 ContainerCreating"), (1, "1/1 Running")],
    ),
}


@pytest.mark.parametrize("name", INCIDENTS)
def test_what_happens_to_a_pod_can_be_seen(name: str) -> None:
    annotations, spec, expected = INCIDENTS[name]
    assert Life(pod(annotations, **spec)).until(34) == expected


def test_a_container_is_ready_again_when_its_incident_is_over() -> None:
    life = Life(pod())
    life.until(3)
    seen = []
    incidents: list[tuple[float, dict[str, str]]] = [
        (4.0, {"ready": "false"}),
        (16.0, {}),
        (28.0, {"ready": "true"}),
    ]
    for at, said in incidents:
        life.pod = life.pod.with_metadata(annotations=pod(said).annotations)
        life.script, _ = scripts.of_pod(life.pod.annotations, scripts.NO_SCRIPT)
        seen.append(life.step(at))
        life.step(at + 11)
    assert seen == ["0/1 Running", "1/1 Running", "1/1 Running"]
    unhealthy = [(at, event.message) for at, event in life.events if event.reason == "Unhealthy"]
    assert unhealthy == [(15.0, "Readiness probe failed: (simulated)")]


@pytest.mark.parametrize("name", TIMELINES)
def test_what_can_be_seen_of_a_pod(name: str) -> None:
    annotations, spec, expected = TIMELINES[name]
    assert Life(pod(annotations, **spec)).until(34) == expected


def test_a_pod_past_its_deadline_has_failed_and_says_why() -> None:
    life = Life(pod(activeDeadlineSeconds=5))
    life.until(10)
    status = life.pod.status
    assert (status.phase, status.reason) == ("Failed", "DeadlineExceeded")
    assert "DeadlineExceeded" in life.list_reasons()


def test_the_back_off_doubles_up_to_five_minutes() -> None:
    life = Life(pod({"outcome": "crash", "run-for": "0"}))
    life.until(1500)
    restarts = sorted(at for at, event in life.events if event.reason == "Started")
    gaps = [round(b - a) for a, b in pairwise(restarts)]
    assert gaps[:8] == [1, 10, 20, 40, 80, 160, 300, 300]


def test_an_unhealthy_container_is_ended_as_the_kubelet_does() -> None:
    life = Life(pod({"outcome": "unhealthy", "run-for": "5s"}))
    life.until(7)
    unhealthy = [(at, n.reason, n.message) for at, n in life.events if n.reason in SICK]
    assert unhealthy == [
        (6, "Unhealthy", "Liveness probe failed: (simulated)"),
        (6, "Killing", "Container main failed liveness probe, will be restarted"),
    ]
    status = (life.pod.status.container_statuses or [])[0]
    ended = status.last_state.terminated if status.last_state else None
    assert ended is not None
    assert (status.restart_count, ended.exit_code, ended.reason) == (1, 137, "Error")


def test_another_image_starts_the_container_anew() -> None:
    life = Life(pod())
    life.until(5)
    changed = [c.replace(image="i:2") for c in life.pod.spec.containers]
    life.pod = life.pod.with_spec(life.pod.spec.replace(containers=changed))
    life.now = 10
    life.until(12)
    assert "Container main definition changed, will be restarted" in [
        event.message for _, event in life.events
    ]
    status = (life.pod.status.container_statuses or [])[0]
    assert (status.image, status.restart_count, status.ready) == ("i:2", 1, True)


def test_a_long_run_forgets_the_back_off() -> None:
    life = Life(pod({"outcome": "fail", "run-for": "700s"}))
    shown = [what for _, what in life.until(3000)]
    assert "0/1 CrashLoopBackOff" not in shown


def test_deletion_sends_term_waits_for_the_containers_and_is_then_over() -> None:
    life = Life(pod())
    life.until(5)
    life.delete(10)
    assert life.step(10) == "1/1 Terminating"
    assert not life.is_over()
    life.step(11)
    assert life.is_over()
    assert life.pod.status.phase == "Succeeded"
    assert [n.message for _, n in life.events if n.reason == "Killing"] == [
        "Stopping container main"
    ]


def test_a_container_that_ignores_term_is_killed_when_the_grace_period_ends() -> None:
    life = Life(pod({"stop-after": "never"}))
    life.until(5)
    life.delete(10, grace=7)
    life.step(10)
    life.step(16.9)
    assert not life.is_over()
    life.step(18)
    assert life.is_over()
    ended = (life.pod.status.container_statuses or [])[0].state
    assert ended is not None
    assert ended.terminated is not None
    assert (ended.terminated.exit_code, life.pod.status.phase) == (137, "Failed")


@pytest.mark.parametrize(
    ("sleeps", "term_until", "ends", "code"),
    [
        (4, "1s", 15, 0),
        (4, "never", 17, 137),  # SIGTERM after four of seven seconds
        (60, "1s", 18, 0),  # the hook takes all seven, and two are left
        (60, "never", 19, 137),
    ],
)
def test_a_hook_that_sleeps_delays_term(sleeps: int, term_until: str, ends: int, code: int) -> None:
    hook = {"preStop": {"sleep": {"seconds": sleeps}}}
    container = {"name": "main", "image": "i:1", "lifecycle": hook}
    life = Life(pod({"stop-after": term_until}, containers=[container]))
    life.until(5)
    life.delete(10, grace=7)
    life.step(10)
    life.step(ends - 0.1)
    assert not life.is_over()
    life.step(ends + 1)
    assert life.is_over()
    ended = (life.pod.status.container_statuses or [])[0].state
    assert ended is not None
    assert ended.terminated is not None
    assert ended.terminated.exit_code == code


def test_a_second_delete_shortens_the_wait() -> None:
    life = Life(pod({"stop-after": "never"}))
    life.until(5)
    life.delete(10, grace=300)
    life.step(10)
    life.delete(10, grace=2)
    life.step(11)
    life.step(13)
    assert life.is_over()


def test_sidecars_end_after_the_ordinary_containers_the_last_first() -> None:
    second = {**SIDECAR, "name": "log"}
    life = Life(pod(initContainers=[SIDECAR, second]))
    life.until(10)
    life.delete(20)
    for at in (20, 21, 22, 23):
        life.step(at)
    killed = [event.message for _, event in life.events if event.reason == "Killing"]
    assert killed == [f"Stopping container {name}" for name in ("main", "log", "proxy")]
    assert life.is_over()


def test_a_pod_that_is_deleted_before_it_started_never_starts() -> None:
    life = Life(pod())
    life.step(0)
    life.delete(0)
    life.step(0.5)
    assert life.is_over()
    assert "Started" not in life.list_reasons()


def test_a_sidecar_that_crashes_is_started_again_even_if_the_pod_is_not() -> None:
    life = Life(
        pod(
            {"outcome.proxy": "fail", "run-for.proxy": "3s", "run-for": "30s"},
            initContainers=[SIDECAR],
            restartPolicy="Never",
        )
    )
    life.until(6)
    proxy = (life.pod.status.init_container_statuses or [])[0]
    assert proxy.restart_count == 1
    assert life.pod.status.phase == "Running"


def test_exit_codes_may_differ_by_index_and_by_the_failures_of_the_index() -> None:
    codes = {"exit-codes-by-index": "2=1,0; 5=137", "run-for": "1s"}
    ends = []
    for index, failures in ((0, 0), (2, 0), (2, 1), (5, 3)):
        own = {
            "batch.kubernetes.io/job-completion-index": str(index),
            "batch.kubernetes.io/job-index-failure-count": str(failures),
        }
        life = Life(pod({**codes, **own}, restartPolicy="Never"))
        ends.append(life.until(5)[-1][1])
    assert ends == ["0/1 Completed", "0/1 Error", "0/1 Completed", "0/1 Error"]


def test_events_are_the_kubelets_and_name_the_container() -> None:
    life = Life(pod())
    life.until(2)
    assert [(n.reason, n.message, n.container) for _, n in life.events] == [
        ("Pulled", 'Container image "i:1" already present on machine', "main"),
        ("Created", "Created container: main", "main"),
        ("Started", "Started container main", "main"),
    ]


def test_a_pod_that_is_never_ready_fails_its_probe_again_and_again() -> None:
    life = Life(pod({"outcome": "never-ready"}))
    life.until(35)
    assert life.list_reasons().count("Unhealthy") == 3
    assert life.condition("Ready")[0] == "False"
