"""Pods that crash, are killed for memory, lose their readiness and write, at a test's word."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from kcm import errors
from kcm.testing import ControlPlane
from kcm.testing.faults.pods import NotRunning
from tests.integration.apiserver.kubectl import VERSIONS, find

KUBECTL = find(VERSIONS[-1])
Connect = Callable[..., httpx.Client]


def pod(name: str, *containers: str, **spec: Any) -> dict[str, Any]:
    names = containers or ("main",)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": one, "image": "nginx:1.27"} for one in names], **spec},
    }


def start(cp: ControlPlane, name: str, *containers: str, **spec: Any) -> None:
    cp.apply(pod(name, *containers, **spec))
    cp.wait_for(f"pod/{name}", condition="Ready")


def statuses(cp: ControlPlane, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cp.get(f"pod/{name}")["status"]["containerStatuses"]
    return found


def test_a_container_crashes_and_starts_again(cp: ControlPlane, name: str) -> None:
    start(cp, name)
    cp.pods[name].crash(exit_code=3)
    cp.eventually(lambda: statuses(cp, name)[0]["restartCount"] == 1)
    cp.wait_for(f"pod/{name}", condition="Ready")
    ended = statuses(cp, name)[0]["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (3, "Error")


def test_each_crash_counts_and_makes_the_next_start_wait(cp: ControlPlane, name: str) -> None:
    start(cp, name)
    for restarts in (1, 2):
        cp.pods[f"default/{name}"].crash()
        if restarts == 1:
            cp.eventually(lambda: statuses(cp, name)[0]["restartCount"] == 1)
            cp.wait_for(f"pod/{name}", condition="Ready")

    def waits() -> bool:
        waiting = statuses(cp, name)[0]["state"].get("waiting", {})
        return bool(waiting.get("reason") == "CrashLoopBackOff")

    cp.eventually(waits)
    with pytest.raises(NotRunning, match=r"container main of pod default/one-\d+ does not run"):
        cp.pods[name].crash()


def test_a_pod_that_is_not_restarted_has_failed(cp: ControlPlane, name: str) -> None:
    start(cp, name, restartPolicy="Never")
    cp.pods[name].oom()
    cp.eventually(lambda: cp.get(f"pod/{name}")["status"]["phase"] == "Failed")
    ended = statuses(cp, name)[0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


def test_one_of_two_containers_crashes(cp: ControlPlane, name: str) -> None:
    start(cp, name, "main", "helper")
    cp.pods[name].crash(container="helper")
    cp.eventually(lambda: statuses(cp, name)[1]["restartCount"] == 1)
    assert statuses(cp, name)[0]["restartCount"] == 0


def test_readiness_goes_and_comes_and_the_service_follows(cp: ControlPlane, name: str) -> None:
    labelled = pod(name)
    labelled["metadata"]["labels"] = {"app": name}
    cp.apply(labelled)
    service = {"selector": {"app": name}, "ports": [{"port": 80}]}
    meta = {"name": name}
    cp.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service})
    cp.wait_for(f"pod/{name}", condition="Ready")

    def is_serving() -> bool:
        slices = cp.list("endpointslices", selector=f"kubernetes.io/service-name={name}")
        ends = [end for one in slices for end in one.get("endpoints") or ()]
        return bool(ends) and all(end["conditions"]["ready"] for end in ends)

    cp.eventually(is_serving)
    cp.pods[name].not_ready()
    cp.wait_for(f"pod/{name}", condition="Ready", status="False")
    cp.eventually(lambda: not is_serving())
    assert statuses(cp, name)[0]["restartCount"] == 0
    cp.pods[name].ready()
    cp.wait_for(f"pod/{name}", condition="Ready")
    cp.eventually(is_serving)
    cp.pods[name].not_ready()
    cp.wait_for(f"pod/{name}", condition="Ready", status="False")
    cp.pods[name].heal()
    cp.wait_for(f"pod/{name}", condition="Ready")


def test_lines_are_in_the_log(cp: ControlPlane, operator: httpx.Client, name: str) -> None:
    start(cp, name, "main", "helper")
    cp.pods[name].log("reconnecting to the database")
    cp.pods[name].log("connected: attempt 2")
    cp.pods[name].log("from the side", container="helper")

    def log(container: str) -> list[str]:
        path = f"/api/v1/namespaces/default/pods/{name}/log"
        text = operator.get(path, params={"container": container}).text
        return text.splitlines()[1:]

    cp.eventually(lambda: len(log("main")) == 2)
    assert log("main") == ["reconnecting to the database", "connected: attempt 2"]
    assert log("helper") == ["from the side"]


@pytest.mark.skipif(not KUBECTL, reason="needs kubectl, see KCM_KUBECTL_DIR")
def test_kubectl_shows_what_happened(cp: ControlPlane, name: str) -> None:
    start(cp, name)
    cp.pods[name].log("out of luck")
    cp.pods[name].crash(exit_code=7)
    cp.eventually(lambda: statuses(cp, name)[0]["restartCount"] == 1)
    command = [str(KUBECTL), f"--kubeconfig={cp.kubeconfig}", "logs", "--previous", name]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert shown.splitlines()[1:] == ["out of luck", "container main exited with code 7 (Error)"]


def test_mistakes_say_what_to_do(cp: ControlPlane, name: str) -> None:
    with pytest.raises(errors.NotFound, match=f'pods "{name}" not found'):
        cp.pods[name].crash()
    cp.apply(pod(name, "main", "helper", nodeSelector={"there": "none"}))
    with pytest.raises(NotRunning, match=f'the pod has no node.*wait_for\\("pod/{name}"'):
        cp.pods[name].oom()
    with pytest.raises(errors.NotFound, match='no container "other"; there are main, helper'):
        cp.pods[name].not_ready("other")
    with pytest.raises(ValueError, match="exit_code=300 is out of range: use 0 to 255"):
        cp.pods[name].crash(300)


def test_the_running_pods_are_listed(cp: ControlPlane, name: str) -> None:
    start(cp, name)
    assert f"default/{name}" in [one.key for one in cp.pods]
    assert f"'default/{name}'" in repr(cp.pods)
    assert repr(cp.pods[name]) == f"<Pod default/{name}>"
