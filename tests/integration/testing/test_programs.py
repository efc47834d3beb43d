"""Programs of simulated containers, in a control plane whose time a test holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kcm.apimachinery.meta_v1 import parse_time
from kcm.testing import ControlPlane
from tests.integration.apiserver.kubectl import VERSIONS, Kubectl, find

KUBECTL = find(VERSIONS[-1])
needs_kubectl = pytest.mark.skipif(not KUBECTL, reason="needs kubectl, see KCM_KUBECTL_DIR")


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(seed=1, programs=True) as started:
        yield started


def container(*command: str, **fields: Any) -> dict[str, Any]:
    return {"name": "main", "image": "busybox:1.36", "command": list(command), **fields}


def pod(name: str, *command: str, volumes: Any = (), **fields: Any) -> dict[str, Any]:
    spec = {"restartPolicy": "Never", "volumes": list(volumes)}
    spec |= {"containers": [container(*command, **fields)]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def state_of(plane: ControlPlane, name: str) -> dict[str, Any]:
    state: dict[str, Any] = plane.get(f"pod/{name}")["status"]["containerStatuses"][0]["state"]
    return state


@needs_kubectl
def test_kubectl_shows_what_a_program_has_written(plane: ControlPlane, tmp_path: Path) -> None:
    plane.apply(pod("talking", "sh", "-c", "echo 'Hello World'; sleep 240; echo bye"))
    plane.apply(pod("silent", "sleep", "240"))
    plane.wait_for("pod/talking", condition="Ready")
    assert KUBECTL is not None
    kubectl = Kubectl(KUBECTL, plane.kubeconfig, "default", tmp_path)
    assert kubectl("logs", "talking") == "Hello World\n"
    assert kubectl("logs", "silent") == ""
    plane.clock.advance("5m")
    assert kubectl("logs", "talking") == "Hello World\nbye\n"
    assert kubectl("logs", "talking", "--tail=1", "--timestamps").endswith("Z bye\n")


def test_a_job_fails_by_the_exit_code_of_its_program(plane: ControlPlane) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [container("sh", "-c", "exit 3")]}}
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]
    spec = {"template": template, "podFailurePolicy": {"rules": rules}}
    plane.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec})
    job = plane.wait_for("job/j", condition="Failed")
    failed = next(one for one in job["status"]["conditions"] if one["type"] == "Failed")
    assert failed["reason"] == "PodFailurePolicy"
    assert "exit code 3" in failed["message"]


def test_a_program_reads_a_config_map_as_it_changes(plane: ControlPlane) -> None:
    conf = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}}
    volumes = [{"name": "v", "configMap": {"name": "conf"}}]
    mounts = [{"name": "v", "mountPath": "/etc/conf"}]
    script = "cat /etc/conf/mode > /dev/termination-log; sleep 60; cat /etc/conf/mode; false"
    plane.apply(pod("reader", "sh", "-c", script, volumes=volumes, volumeMounts=mounts,
                    terminationMessagePolicy="FallbackToLogsOnError"))  # fmt: skip
    plane.clock.advance("10s")
    assert state_of(plane, "reader")["waiting"] == {
        "reason": "CreateContainerConfigError", "message": 'configmap "conf" not found',
    }  # fmt: skip
    plane.apply({**conf, "data": {"mode": ""}})
    plane.wait_for("pod/reader", condition="Ready")
    plane.apply({**conf, "data": {"mode": "slow"}})
    plane.clock.advance("2m")
    ended = state_of(plane, "reader")["terminated"]
    assert (ended["exitCode"], ended["message"]) == (1, "slow")


def test_a_program_reads_the_token_of_its_service_account(plane: ControlPlane) -> None:
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    script = f"cat {folder}/namespace; echo; cat {folder}/token; false"
    plane.apply(pod("caller", "sh", "-c", script, terminationMessagePolicy="FallbackToLogsOnError"))
    plane.clock.advance("10s")
    namespace, token = state_of(plane, "caller")["terminated"]["message"].split()
    group = "authentication.k8s.io/v1"
    review = {"apiVersion": group, "kind": "TokenReview", "spec": {"token": token}}
    answer = plane.objects.client.post(f"/apis/{group}/tokenreviews", json=review)
    assert (namespace, answer.json()["status"]["user"]["username"]) == (
        "default", "system:serviceaccount:default:default",
    )  # fmt: skip


def test_an_hour_of_sleep_takes_an_hour_of_the_clock(plane: ControlPlane) -> None:
    plane.apply(pod("sleeper", "sleep", "3600"))
    plane.wait_for("pod/sleeper", condition="Ready")
    started = plane.clock.now
    plane.clock.advance("59m")
    assert "running" in state_of(plane, "sleeper")
    plane.clock.to(started + timedelta(hours=1, seconds=5))
    state = state_of(plane, "sleeper")["terminated"]
    begun, ended = (parse_time(state[name]) for name in ("startedAt", "finishedAt"))
    assert (state["exitCode"], ended - begun) == (0, timedelta(hours=1))


def test_an_annotation_says_what_a_container_does_instead(plane: ControlPlane) -> None:
    scripted = pod("scripted", "sh", "-c", "exit 3")
    scripted["metadata"]["annotations"] = {"simulation.kcm.dev/exit-codes": "5"}
    plane.apply(scripted)
    plane.clock.advance("10s")
    assert state_of(plane, "scripted")["terminated"]["exitCode"] == 5


def test_without_the_option_containers_do_as_before() -> None:
    with ControlPlane(seed=1) as plane:
        plane.apply(pod("failing", "sh", "-c", "exit 3"))
        plane.clock.advance("10s")
        assert state_of(plane, "failing")["terminated"]["exitCode"] == 0
