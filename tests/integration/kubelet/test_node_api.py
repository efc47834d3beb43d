"""A node's HTTP API with real processes, used by kubectl through the API server."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from kcm.kubelet.assembly.process import KubeletProcess
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.shutdown.grace_periods import ShutdownGracePeriod
from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until
from tests.integration.apiserver.kubectl import VERSIONS, Kubectl, drop_complaints, find
from tests.integration.apiserver.serving import Live, live
from tests.integration.kubelet.node import NO_EVICTIONS

NODE = "node-1"
SERVES = (
    "echo begin; echo broken >&2; "
    "exec python3 -u -c 'import os, socket; "
    's = socket.create_server((os.environ["POD_IP"], 8080)); '
    "[(lambda c: (c.sendall(c.recv(9)[::-1]), c.close()))(s.accept()[0]) for _ in range(99)]'"
)
ECHOES = "echo first; while read line; do echo got $line; [ $line = end ] && exit 7; done"


@dataclass
class Node:
    """An API server and one kubelet."""

    api: Live
    kubelet: KubeletProcess
    kubectl: Kubectl

    @property
    def url(self) -> str:
        options = self.kubelet.kubelet.options
        return f"http://{options.node_ip}:{options.port}"

    def start(
        self, name: str, *command: str, ready: bool = True, on: str = NODE, **spec: object
    ) -> None:
        container = {"name": "main", "image": "none", "command": list(command), **spec}
        pod = {
            "metadata": {"name": name},
            "spec": {
                "nodeName": on,
                "containers": [container],
                "terminationGracePeriodSeconds": 1,
            },
        }
        self.api.create("/api/v1/namespaces/default/pods", pod)
        if ready:
            until(lambda: self.status(name).get("ready"), f"{name} is not ready")

    def status(self, name: str) -> dict[str, object]:
        pod_status = self.api.get(f"/api/v1/namespaces/default/pods/{name}")["status"]
        statuses: list[dict[str, object]] = pod_status.get("containerStatuses") or [{}]
        return statuses[0]


def background(kubectl: Kubectl, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        kubectl.command(*args), env=kubectl.environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.fixture(scope="module")
def node(redis_server: EmbeddedServer) -> Iterator[Node]:
    binary = find("1.33")
    if binary is None:
        pytest.skip("kubectl.1.33 is not here: see KCM_KUBECTL_DIR")
    folder = Path(tempfile.mkdtemp(prefix="kcm-node-"))
    with live(redis_server.url, folder) as api:
        options = KubeletOptions(
            node_name=NODE, root_dir=folder / "kubelet", port=0, eviction=NO_EVICTIONS
        )
        kubelet = KubeletProcess(api.settings, options)
        kubelet.start()
        running = Node(api, kubelet, Kubectl(binary, api.kubeconfig, "default", folder))
        try:
            until(lambda: api.client.get(f"/api/v1/nodes/{NODE}").status_code == 200)
            running.start("web", "sh", "-c", SERVES, readinessProbe={
                "tcpSocket": {"port": 8080}, "periodSeconds": 1})  # fmt: skip
            yield running
        finally:
            kubelet.stop()
            for sandbox in kubelet.kubelet.runtime.list_pod_sandboxes():
                kubelet.kubelet.runtime.remove_pod_sandbox(sandbox.id)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=VERSIONS)
def kubectl(request: pytest.FixtureRequest, node: Node) -> Kubectl:
    """Returns the oldest kubectl, which uses SPDY, or the newest, which uses WebSocket."""
    binary = find(request.param)
    if binary is None:
        pytest.skip(f"kubectl.{request.param} is not here: see KCM_KUBECTL_DIR")
    return replace(node.kubectl, binary=binary)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ((), ["begin", "broken"]),
        (("--tail=1",), 1),
        (("--tail=0",), []),
        (("--limit-bytes=3",), 1),
        (("--since=1h",), ["begin", "broken"]),
    ],
)
def test_logs_are_what_the_container_wrote(
    node: Node, arguments: tuple[str, ...], printed: list[str] | int
) -> None:
    lines = node.kubectl("logs", "web", *arguments).splitlines()
    actual = len(lines) if isinstance(printed, int) else sorted(lines)
    assert actual == printed


def test_a_log_may_have_times(node: Node) -> None:
    lines = node.kubectl("logs", "web", "--timestamps").splitlines()
    assert all(line[:2] == "20" and line.split()[0].endswith("Z") for line in lines)


@pytest.mark.parametrize(
    ("command", "code", "stdout", "stderr"),
    [
        ("echo out; echo err >&2", 0, "out\n", "err\n"),
        ("exit 3", 3, "", "command terminated with exit code 3\n"),
        ("head -c 1000000 /dev/zero | tr '\\0' x", 0, "x" * 1_000_000, ""),
    ],
)
def test_a_command_runs_beside_the_container(
    kubectl: Kubectl, command: str, code: int, stdout: str, stderr: str
) -> None:
    done = kubectl.run("exec", "web", "--", "sh", "-c", command)
    told = drop_complaints(done.stderr)
    assert (done.returncode, done.stdout, told) == (code, stdout, stderr)


def test_a_command_reads_to_the_end_of_its_input(kubectl: Kubectl) -> None:
    done = kubectl.run("exec", "-i", "web", "--", "wc", "-c", stdin="x" * 300_000)
    assert (done.returncode, done.stdout.strip()) == (0, "300000")


def test_a_command_that_is_not_there_is_told(kubectl: Kubectl) -> None:
    assert "nosuch" in kubectl.run_failing("exec", "web", "--", "nosuch")
    assert "not found" in kubectl.run_failing("exec", "ghost", "--", "true")


def test_connections_are_forwarded_and_refusals_told(kubectl: Kubectl) -> None:
    forwarding = background(kubectl, "port-forward", "pod/web", ":8080", "--address", "127.0.0.1")
    assert forwarding.stdout is not None
    try:
        port = int(forwarding.stdout.readline().split("127.0.0.1:")[1].split()[0])
        for word in (b"abc", b"xyz"):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(word)
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(9) == word[::-1]
    finally:
        forwarding.terminate()
        forwarding.communicate(timeout=60)
    refused = background(kubectl, "port-forward", "pod/web", ":9", "--address", "127.0.0.1")
    assert refused.stdout is not None
    try:
        port = int(refused.stdout.readline().split("127.0.0.1:")[1].split()[0])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.settimeout(20)
            assert connection.recv(9) == b""
    finally:
        refused.terminate()
        _, message = refused.communicate(timeout=60)
    assert "Connection refused" in message


def test_attaching_reads_and_writes_and_logs_are_followed_to_the_end(
    node: Node, kubectl: Kubectl
) -> None:
    name = f"echo-{kubectl.binary[-2:]}"
    node.start(name, "sh", "-c", ECHOES, stdin=True)
    following = background(kubectl, "logs", "-f", name)
    attached = background(kubectl, "attach", "-i", name)
    assert attached.stdin is not None
    assert attached.stdout is not None
    attached.stdin.write("one\n")
    attached.stdin.flush()
    assert attached.stdout.readline() == "got one\n"
    attached.stdin.write("end\n")
    attached.stdin.flush()
    assert attached.stdout.readline() == "got end\n"
    attached.communicate(timeout=60)
    followed, _ = following.communicate(timeout=60)
    assert followed == "first\ngot one\ngot end\n"
    until(lambda: node.status(name).get("restartCount") == 1, "it was not restarted")
    assert "got end" in kubectl("logs", "--previous", name)


def test_a_failed_liveness_probe_restarts_the_container(node: Node) -> None:
    probe = {"exec": {"command": ["test", "!", "-e", "dead"]}, "periodSeconds": 1,
             "failureThreshold": 1}  # fmt: skip
    node.start("sick", "sleep", "1000", livenessProbe=probe)
    node.kubectl("exec", "sick", "--", "touch", "dead")
    until(lambda: node.status("sick").get("restartCount") == 1, "it was not restarted")


def test_a_nodes_own_pages_come_through_the_api_server(node: Node) -> None:
    def page(path: str) -> str:
        return node.kubectl("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/{path}")

    assert page("healthz") == "ok"
    assert '"name": "web"' in page("pods")
    assert 'prober_probe_total{container="main"' in page("metrics")
    assert 'pod_memory_working_set_bytes{namespace="default",pod="web"}' in page("metrics/resource")
    assert f'"nodeName":"{NODE}"' in page("stats/summary")
    assert "NotFound" in node.kubectl.run_failing(
        "get", "--raw", f"/api/v1/nodes/{NODE}/proxy/nosuch"
    )


def test_without_the_token_a_node_tells_only_whether_it_is_well(node: Node) -> None:
    assert httpx.get(f"{node.url}/healthz").status_code == 200
    for path in ("pods", "metrics", "containerLogs/default/web/main", "exec/default/web/main"):
        for headers in ({}, {"authorization": "Bearer guess"}):
            assert httpx.get(f"{node.url}/{path}", headers=headers).status_code == 401


def test_who_may_not_exec_gets_no_connection(node: Node) -> None:
    path = "/api/v1/namespaces/default/pods/web/exec?command=true&stdout=1"
    upgrade = {"connection": "Upgrade", "upgrade": "websocket"}
    with node.api.as_user("janes-token", **upgrade) as jane:
        assert jane.get(path).status_code == 403
    assert node.api.client.get(path).json()["message"] == "Upgrade request required"


def test_usage_is_shown(node: Node) -> None:
    until(lambda: "web" in node.kubectl.run("top", "pod").stdout, "no figures")
    assert NODE in node.kubectl("top", "node")


def test_a_node_that_shuts_down_ends_its_pods_and_says_so(node: Node) -> None:
    api = node.api
    options = KubeletOptions(
        node_name="node-2",
        root_dir=api.kubeconfig.parent / "two",
        port=0,
        eviction=NO_EVICTIONS,
        shutdown_grace_periods=(ShutdownGracePeriod(0, 20),),
    )
    kubelet = KubeletProcess(api.settings, options)
    kubelet.start()
    try:
        until(lambda: api.client.get("/api/v1/nodes/node-2").status_code == 200)
        node.start("leaves", "sleep", "1000", on="node-2")
    finally:
        kubelet.stop()
    assert [one.state for one in kubelet.kubelet.runtime.list_containers()] == ["EXITED"]
    status = api.get("/api/v1/namespaces/default/pods/leaves")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Terminated")
    reported = api.get("/api/v1/nodes/node-2")["status"]["conditions"]
    ready = next(one for one in reported if one["type"] == "Ready")
    assert (ready["status"], ready["message"]) == ("False", "node is shutting down")
    for sandbox in kubelet.kubelet.runtime.list_pod_sandboxes():
        kubelet.kubelet.runtime.remove_pod_sandbox(sandbox.id)


def test_a_running_pod_is_debugged_in_an_ephemeral_container(node: Node, kubectl: Kubectl) -> None:
    name = f"d{kubectl.binary[-2:]}"
    shell = background(kubectl, "debug", "web", "-i", "--image=busybox", f"--container={name}")
    printed, _ = shell.communicate("echo sum $((20+22)); exit 3\n", timeout=60)
    assert "sum 42" in printed

    def status() -> dict[str, Any]:
        pod = node.api.get("/api/v1/namespaces/default/pods/web")
        known = pod["status"].get("ephemeralContainerStatuses") or ()
        return next((one["state"] for one in known if one["name"] == name), {})

    until(lambda: status().get("terminated"), "the end of the debugger")
    assert status()["terminated"]["exitCode"] == 3
    assert "sum 42" in kubectl("logs", "web", "-c", name)
    events = kubectl("get", "events", "-o", "jsonpath={.items[*].involvedObject.fieldPath}")
    assert f"spec.ephemeralContainers{{{name}}}" in events


def test_a_copy_of_a_pod_is_debugged(node: Node, kubectl: Kubectl) -> None:
    copy = f"copy-{kubectl.binary[-2:]}"
    printed = kubectl(
        "debug", "web", f"--copy-to={copy}", "--same-node", "--image=busybox",
        "--container=shell", "--attach=0",
        "--", "sh", "-c", "echo in the copy; sleep 1000",
    )  # fmt: skip
    until(lambda: "in the copy" in kubectl.run("logs", copy, "-c", "shell").stdout, printed)
    kubectl("delete", "pod", copy, "--now", "--wait=false")


def test_files_are_copied_to_a_container_and_back(
    node: Node, kubectl: Kubectl, tmp_path: Path
) -> None:
    there, folder = f"copied-{kubectl.binary[-2:]}", tmp_path / "folder"
    folder.mkdir()
    (folder / "large").write_bytes(bytes(range(256)) * 4000)
    (folder / "small").write_text("small")
    kubectl("cp", str(folder), f"web:{there}")
    assert kubectl("exec", "web", "--", "cat", f"{there}/small") == "small"
    kubectl("cp", f"web:{there}/large", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == (folder / "large").read_bytes()


def test_a_pods_pages_come_through_the_proxy(node: Node) -> None:
    program = (
        "import http.server, os; http.server.HTTPServer((os.environ['POD_IP'], 8000), "
        "http.server.SimpleHTTPRequestHandler).serve_forever()"
    )
    probe = {"tcpSocket": {"port": 8000}, "periodSeconds": 1}
    node.start("pages", "sh", "-c", f'echo hello > page; exec python3 -c "{program}"',
               readinessProbe=probe, ports=[{"name": "web", "containerPort": 8000}])  # fmt: skip
    for pod in ("pages", "pages:8000", "http:pages:8000"):
        raw = node.kubectl("get", "--raw", f"/api/v1/namespaces/default/pods/{pod}/proxy/page")
        assert raw == "hello\n"


def test_a_running_pod_is_resized(node: Node) -> None:
    def limits(cpu: str, memory: str) -> dict[str, object]:
        requests = {"cpu": "10m", "memory": "64Mi"}
        return {"limits": {"cpu": cpu, "memory": memory}, "requests": requests}

    node.start("sized", "sleep", "1000", resources=limits("1", "128Mi"), resizePolicy=[
        {"resourceName": "memory", "restartPolicy": "RestartContainer"}])  # fmt: skip

    def resize(resources: dict[str, object]) -> None:
        change = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
        path = "/api/v1/namespaces/default/pods/sized/resize"
        answer = node.api.patch(path, change, "strategic")
        assert answer.status_code == 200, answer.text

    def limits_now() -> object:
        resources: Any = node.status("sized").get("resources") or {}
        return resources.get("limits")

    def quota() -> int | None:
        runtime = node.kubelet.kubelet.runtime
        running = str(node.status("sized")["containerID"]).rpartition("/")[2]
        return runtime.container_status(running).config.resources.cpu_quota

    assert quota() == 100_000
    resize(limits("500m", "128Mi"))
    until(lambda: limits_now() == {"cpu": "500m", "memory": "128Mi"}, "it was not resized")
    until(lambda: quota() == 50_000, "the runtime does not know")
    assert node.status("sized")["restartCount"] == 0
    resize(limits("500m", "256Mi"))
    until(lambda: node.status("sized")["restartCount"] == 1, "it was not restarted")
    until(lambda: limits_now() == {"cpu": "500m", "memory": "256Mi"}, "it was not resized")

    def told() -> list[tuple[str, str]]:
        pod = node.api.get("/api/v1/namespaces/default/pods/sized")
        conditions = pod["status"]["conditions"]
        return [(c["type"], c.get("reason", "")) for c in conditions if "Resize" in c["type"]]

    resize({"requests": {"cpu": "9000"}, "limits": {"cpu": "9000"}})
    until(lambda: told() == [("PodResizePending", "Infeasible")], "the kubelet does not say so")
    assert limits_now() == {"cpu": "500m", "memory": "256Mi"}
    resize({"requests": {"cpu": "20m"}, "limits": {"cpu": "400m"}})
    until(lambda: not told(), "the condition stays")
    until(lambda: quota() == 40_000, "it was not resized again")
