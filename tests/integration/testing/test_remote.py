"""The HTTP API by which tests in any language hold a control plane."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kcm.testing import ControlPlane
from kcm.testing.remote.server import serve
from tests.integration.testing.objects import WEB

JOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {
    restartPolicy: Never, containers: [{name: main, image: busybox}]}}}}
"""


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as one:
        yield one


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[httpx.Client]:
    with serve(plane) as remote:
        headers = {"Authorization": f"Bearer {remote.token}"}
        with httpx.Client(base_url=f"{remote.url}/v1/", headers=headers, timeout=60) as client:
            yield client


def ask(api: httpx.Client, method: str, path: str, **values: Any) -> Any:
    reads = method == "GET"
    response = api.request(
        method, path, params=values if reads else None, json=None if reads else values
    )
    assert response.status_code == 200, response.text
    return response.json()


def test_nobody_without_the_token_is_answered(api: httpx.Client) -> None:
    assert api.get("clock", headers={"Authorization": "Bearer no"}).status_code == 401


@pytest.mark.parametrize("length", [b"9" * 5000, b"9999999", b"\xc2\xb2", b"-1"])
def test_a_body_whose_length_is_too_large_or_no_number_is_refused(
    api: httpx.Client, length: bytes
) -> None:
    with socket.create_connection((api.base_url.host, api.base_url.port or 0), 10) as wire:
        wire.sendall(b"POST /v1/settle HTTP/1.1\r\nContent-Length: " + length + b"\r\n\r\n")
        with wire.makefile("rb") as answer:
            assert answer.read().startswith(b"HTTP/1.1 413 ")  # up to the end of the connection


def test_it_says_what_it_is(api: httpx.Client, plane: ControlPlane) -> None:
    told = ask(api, "GET", "")
    assert (told["version"], told["url"]) == ("v1", plane.url)
    assert Path(told["kubeconfig"]).exists()


def test_a_night_passes_while_the_clock_stands_still(
    api: httpx.Client, plane: ControlPlane
) -> None:
    plane.apply(JOB)
    before = ask(api, "POST", "clock/freeze")
    assert before["frozen"]
    rest = ask(api, "POST", "clock/advance", duration="24h")
    assert rest["at"] > before["now"]
    assert any("report" in one["what"] for one in rest["pending"])
    assert len(plane.list("jobs")) == 1
    assert ask(api, "POST", "settle")["at"] == rest["at"]
    ask(api, "POST", "clock/run")
    assert not ask(api, "GET", "clock")["frozen"]
    assert api.post("clock/advance", json={"duration": "-1h"}).status_code == 400


def test_faults_hit_and_say_how_often(api: httpx.Client, plane: ControlPlane) -> None:
    fault = ask(
        api, "POST", "faults/api", verb="get", resource="configmaps", error=503, **{"for": "httpx"}
    )
    token = {"Authorization": f"Bearer {plane.token}", "user-agent": "httpx"}
    trust = ssl.create_default_context(cafile=plane.kubeconfig.parent / "apiserver.crt")
    with httpx.Client(verify=trust, headers=token) as client:
        path = f"{plane.url}/api/v1/namespaces/default/configmaps/a"
        assert client.get(path).status_code == 503
        assert ask(api, "GET", f"faults/{fault['id']}")["hits"] == 1
        assert ask(api, "DELETE", f"faults/{fault['id']}")["hits"] == 1
        assert client.get(path).status_code == 404
    assert ask(api, "DELETE", "faults") == []


def test_nodes_and_pods_fail(api: httpx.Client, plane: ControlPlane) -> None:
    plane.apply(WEB)
    plane.wait_for("deployment/web", condition="Available")
    pod = plane.list("pods", "default", "app=web")[0]["metadata"]["name"]
    ask(api, "POST", f"pods/default/{pod}/crash", exit_code=3)
    ask(api, "POST", "nodes/node-1/full")
    assert ask(api, "GET", "nodes") == [
        {"name": "node-1", "ready": True, "states": ["disk-pressure"]}
    ]
    assert ask(api, "POST", "nodes/node-1/heal")["states"] == []
    refused = api.post(f"pods/default/{pod}/crash", json={"exit_code": 999})
    assert refused.status_code == 400
    assert "use 0 to 255" in refused.json()["error"]


def test_what_happened_is_told(api: httpx.Client, plane: ControlPlane, tmp_path: Path) -> None:
    mark = ask(api, "POST", "notes", text="here it begins")
    plane.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "told"}})
    history = ask(api, "GET", "history", kind="configmap", since=mark["after"])
    (write,) = history["writes"]
    assert (write["name"], write["event"], write["author"]) == ("told", "ADDED", "kubernetes-admin")
    assert "configmaps/told" in ask(api, "GET", "timeline", since=mark["after"])["text"]
    explanation = ask(api, "GET", "explain", object="configmap/told")
    assert explanation["exists"]
    assert "told" in explanation["text"]
    page = ask(api, "POST", "pages", folder=str(tmp_path), test="TestTold", since=mark["after"])
    assert str(tmp_path) in page["text"]
    assert "here it begins" in next(tmp_path.glob("*.html")).read_text()


def test_it_is_there_for_other_languages_until_their_end() -> None:
    command = [sys.executable, "-m", "kcm.testing.test_env", "--bare", "--serve"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        places = json.loads(process.stdout.readline())
        headers = {"Authorization": f"Bearer {places['KCM_TEST_TOKEN']}"}
        told = httpx.get(f"{places['KCM_TEST_API']}/v1", headers=headers).json()
        assert told["url"] == places["server"]
        kubeconfig = Path(places["KUBECONFIG"])
        assert kubeconfig.exists()
        process.stdin.close()
        assert process.wait(10) == 0
    assert not kubeconfig.exists()
