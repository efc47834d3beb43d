"""A control plane in the process of a test: what a tester of operators gets."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from kcm import errors
from kcm.testing import ApiError, ControlPlane, Rest, UnsettledError
from kcm.testing.control_plane.assembly import Assembly
from kcm.testing.control_plane.loop import ControlLoop
from kcm.testing.waiting import until
from tests.integration.apiserver.kubectl import VERSIONS, find
from tests.integration.testing.objects import CRON_TABS, WEB

KUBECTL = find(VERSIONS[-1])


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    with ControlPlane(nodes=2) as started:
        yield started


def test_a_deployment_comes_up_and_heals(control_plane: ControlPlane) -> None:
    control_plane.apply(WEB)
    control_plane.wait_for("deployment/web", condition="Available")
    first = {pod["metadata"]["name"] for pod in control_plane.list("pods", selector="app=web")}
    control_plane.delete(f"pod/{min(first)}")

    def is_healed() -> bool:
        pods = control_plane.list("pods", selector="app=web")
        names = {pod["metadata"]["name"] for pod in pods}
        phases = [pod["status"].get("phase") for pod in pods]
        return phases == ["Running", "Running"] and names != first

    control_plane.eventually(is_healed)


@pytest.mark.skipif(not KUBECTL, reason="needs kubectl, see KCM_KUBECTL_DIR")
def test_kubectl_reaches_it_by_its_kubeconfig(control_plane: ControlPlane) -> None:
    command = [KUBECTL, f"--kubeconfig={control_plane.kubeconfig}", "get", "nodes", "-o", "name"]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout  # type: ignore[arg-type] # KUBECTL is not None here
    assert output.split() == ["node/node-1", "node/node-2"]


def test_it_does_not_miss_workers(
    control_plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    control_plane.clock.advance(60)
    assert [record.getMessage() for record in caplog.records] == []


def test_what_does_not_come_is_told_with_what_came(control_plane: ControlPlane) -> None:
    stuck = WEB.replace("name: web", "name: stuck").replace(
        "main", "m, resources: {requests: {cpu: 999}}"
    )
    control_plane.apply(stuck)
    control_plane.wait_for("deployment/stuck", condition="Available", status="False")
    late = r"Available=True of deployment/stuck did not hold within 0.1 s; its conditions: .*False"
    with pytest.raises(AssertionError, match=late):
        control_plane.wait_for("deployment/stuck", condition="Available", within=0.1)
    with pytest.raises(AssertionError, match=r'deployments\.apps "none" not found'):
        control_plane.wait_for("deployment/none", condition="Available", within=0.1)


def test_one_that_never_rests_starts_nevertheless(monkeypatch: pytest.MonkeyPatch) -> None:
    def settle(loop: ControlLoop, timeout: float) -> Rest:
        raise UnsettledError("two controllers fight")

    monkeypatch.setattr(ControlLoop, "settle", settle)
    with ControlPlane(nodes=1) as restless:
        assert [node["metadata"]["name"] for node in restless.list("nodes")] == ["node-1"]


def test_the_server_says_why_it_refuses(control_plane: ControlPlane) -> None:
    with pytest.raises(ApiError, match=r"spec\.replicas: Invalid value: -1") as refused:
        control_plane.apply(WEB.replace("replicas: 2", "replicas: -1"))
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")


def test_another_one_knows_nothing_of_the_first_and_leaves_nothing() -> None:
    threads = set(threading.enumerate())
    with ControlPlane(nodes=0, flags=["--concurrent-replicaset-syncs=1"]) as first:
        first.apply(CRON_TABS)
        first.wait_for("crd/crontabs.example.com", condition="Established")
        folder = first.kubeconfig.parent
    with pytest.raises(errors.ConfigurationError, match="has stopped"):
        first.list("deployments")
    with ControlPlane(nodes=0, controllers=["replicaset-controller"]) as second:
        assert second.list("deployments") == []
        with pytest.raises(errors.UnknownKind):
            second.list("crontabs")
        second.apply(WEB)
        assert second.get("deployment/web")["status"] == {}
    assert not folder.exists()
    assert set(threading.enumerate()) <= threads


def test_pods_get_the_certificate_that_is_served(control_plane: ControlPlane) -> None:
    served = control_plane.kubeconfig.with_name("apiserver.crt").read_text()
    control_plane.eventually(
        lambda: control_plane.get("configmap/kube-root-ca.crt")["data"]["ca.crt"] == served
    )


def test_its_memory_is_free_when_it_has_stopped() -> None:
    gc.collect()
    with ControlPlane(nodes=0) as stopped:
        engine = stopped._engine
        assert isinstance(engine, Assembly)
        parts = [
            weakref.ref(part) for part in (engine.loop, engine.loop.parts, engine.find_store())
        ]
    assert [part() for part in parts] == [None, None, None]
    assert stopped.history("namespaces", "default"), "what happened can be read afterwards"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"flags": ["--no-such-flag"]}, "no-such-flag"),
        ({"controllers": ["nobody"]}, "nobody"),
        ({"config": {"kind": "Pod"}}, "KubeControllerManagerConfiguration"),
        ({"flags": "--x=3s"}, r'flags are several: write flags=\["--x=3s"\]'),
        ({"controllers": "deployment"}, r'controllers are several: write controllers=\["deploy'),
        ({"nodes": "3"}, "nodes=3 is no number: use 0 or more"),
        ({"nodes": -1}, "nodes=-1 is no number: use 0 or more"),
        ({"seed": "x"}, "seed=x is no integer"),
    ],
)
def test_what_is_wrong_with_its_arguments_is_named(
    arguments: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        with pytest.raises(errors.ConfigurationError, match=why):
            ControlPlane(**arguments).start()
        assert not list(Path(folder).iterdir())


SCRIPT = """
from kcm.testing import ControlPlane
control_plane = ControlPlane(nodes=1)
control_plane.start()
print(control_plane.kubeconfig, flush=True)
import time
time.sleep(1000)
"""


def test_nothing_is_left_of_a_process_that_was_killed() -> None:
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SCRIPT], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip()).parent
    assert folder.is_dir()
    children = psutil.Process(process.pid).children(recursive=True)
    assert any("valkey" in child.name() or "redis" in child.name() for child in children)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    until(lambda: not any(child.is_running() for child in children), "the end of its processes")
    until(lambda: not folder.exists(), "the end of its folder")


def test_a_kind_and_its_objects_are_applied_in_one_go(control_plane: ControlPlane) -> None:
    own = "apiVersion: example.com/v1\nkind: CronTab\nmetadata: {name: mine}\n"
    control_plane.apply(f"{CRON_TABS}---\n{own}")
    assert control_plane.get("crontab/mine")["metadata"]["name"] == "mine"
    control_plane.delete("crd/crontabs.example.com")


def test_a_kind_that_nobody_defined_is_unknown(control_plane: ControlPlane) -> None:
    with pytest.raises(errors.UnknownKind, match="gizmos"):
        control_plane.list("gizmos")
