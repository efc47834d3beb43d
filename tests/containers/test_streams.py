"""kubectl and containers: exec, attach, port-forward, cp, logs, and what outlives whom."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kcm.clock import RealClock
from kcm.kubelet import cri
from kcm.kubelet.runtime.cri.channel import RuntimeChannel
from kcm.kubelet.runtime.cri.events import ContainerEvents
from kcm.kubelet.runtime.cri.images import CRIImages
from kcm.kubelet.runtime.cri.runtime import OWNER, CRIRuntime
from kcm.kubelet.runtime.cri.services import identify
from kcm.kubelet.runtime.pod_cgroups import PodCgroups
from kcm.testing.waiting import PATIENCE, until
from tests.containers import images
from tests.containers.cluster import GROUP, Cluster, is_ready, shell, status_of
from tests.containers.machine import ADDRESS
from tests.integration.apiserver.kubectl import drop_complaints

WAIT = "while true; do sleep 1; done"
GET = "import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1]).read().decode())"


def start(node: Cluster, name: str, script: str = WAIT, **more: Any) -> None:
    node.create(name, shell(script, **more))
    node.wait_until_ready(name)


def test_a_command_has_its_input_its_outputs_and_its_code(node: Cluster) -> None:
    start(node, "web", ports=[{"containerPort": 8082, "hostPort": 18082}])
    done = node.kubectl(
        "exec", "-i", "web", "--", "sh", "-c", "wc -c; echo oh >&2; exit 7", stdin="x" * 200_000
    )
    assert (done.stdout, done.returncode) == ("200000\n", 7)
    assert drop_complaints(done.stderr).splitlines()[0] == "oh"
    missing = node.kubectl("exec", "web", "--", "/no/such/program")
    assert missing.returncode == 1
    assert "/no/such/program" in missing.stderr
    large = node.run("exec", "web", "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x")
    assert len(large) == 3_000_000


def test_a_terminal_has_the_size_of_the_clients(node: Cluster) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    command = node.kubectl_command(
        "exec", "-it", "web", "--", "sh", "-c",
        "while [ \"$(stty size)\" != '33 99' ]; do sleep 0.1; done; tty; echo it is so",
    )  # fmt: skip
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=node.env) as client:
        os.close(slave)
        out = b""
        while b"it is so" not in out:
            out += os.read(master, 4096)
        assert client.wait(PATIENCE) == 0
    os.close(master)
    assert b"/dev/pts/" in out


def test_a_client_attaches_to_what_runs(node: Cluster) -> None:
    start(node, "talker", "while read x; do echo you said $x; done", stdin=True)
    command = node.kubectl_command("attach", "-i", "talker")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=node.env,
    ) as client:  # fmt: skip
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write("hello\n")
        client.stdin.flush()
        assert client.stdout.readline() == "you said hello\n"
        client.kill()
    assert "you said hello" in node.run("logs", "talker")
    assert status_of(node.pod("talker"))["restartCount"] == 0


def test_a_port_of_the_pods_own_loopback_is_forwarded(node: Cluster) -> None:
    node.run("exec", "web", "--", "sh", "-c", "mkdir /www; echo page > /www/index.html")
    node.run("exec", "web", "--", "httpd", "-p", "127.0.0.1:8080", "-h", "/www")
    with subprocess.Popen(
        node.kubectl_command("port-forward", "web", "18080:8080", "18081:8081"), env=node.env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as client:  # fmt: skip
        assert client.stdout is not None
        assert client.stderr is not None
        while "18081" not in client.stdout.readline():
            pass
        get = [sys.executable, "-c", GET]
        assert node.machine.run([*get, "http://127.0.0.1:18080/index.html"]) == "page\n"
        refused = subprocess.run(
            node.machine.command([*get, "http://127.0.0.1:18081/"]),
            capture_output=True,
            check=False,
        )
        assert refused.returncode != 0
        assert "connection refused" in client.stderr.readline().lower()
        client.kill()


def test_a_port_of_the_node_leads_to_the_pod(node: Cluster) -> None:
    node.run("exec", "web", "--", "httpd", "-p", "8082", "-h", "/www")
    page = f"http://{ADDRESS}:18082/index.html"
    assert node.machine.run([sys.executable, "-c", GET, page]) == "page\n"
    node.create("second", shell("true", ports=[{"containerPort": 80, "hostPort": 18082}]),
                nodeName="desk")  # fmt: skip
    pod = node.wait_until_done("second")
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "NodePorts")
    node.delete("second")


def test_files_are_copied_both_ways(node: Cluster, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("some text")
    node.run("cp", str(tmp_path / "there"), "web:/tmp/here")
    node.run("cp", "web:/tmp/here", str(tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "some text"


def test_a_followed_log_goes_on_over_its_rotation(node: Cluster) -> None:
    script = "n=0; while [ $n -lt 3000 ]; do n=$((n+1)); echo line $n; done; sleep 1"
    # Some lines a moment, so that several rotations happen while it runs.
    slow = script.replace("echo line $n;", "echo line $n; [ $((n % 100)) = 0 ] && sleep 0.1;")
    node.create("writer", shell(slow), restartPolicy="Never")
    node.wait_until_ready("writer")
    lines = node.run("logs", "-f", "writer", "--pod-running-timeout=20s").splitlines()
    folder = node.kubelet_root / "logs"
    files = {path.name for path in folder.glob("default_writer_*/main/*")}
    assert len(files) > 1, files
    assert len(files) <= 5
    numbers = [int(line.split()[1]) for line in lines]
    assert numbers == list(range(numbers[0], 3001))
    node.delete("writer")


def test_what_runs_goes_on_without_kubelet_and_containerd(node: Cluster) -> None:
    before = status_of(node.pod("web"))["containerID"]
    node.kill_kubelet()
    node.machine.kill_containerd()
    node.run("delete", "pod", "talker", "--wait=false")
    node.machine.start_containerd()
    node.start_kubelet()
    until(lambda: not node.pod("talker"), "the pod that was deleted meanwhile", PATIENCE)
    node.machine.kill_containerd()  # now under a kubelet that runs
    failed = node.kubectl("exec", "web", "--", "true")
    assert failed.returncode != 0
    assert "rpc error: code = Unavailable" in failed.stderr
    node.machine.start_containerd()
    start(node, "later")
    assert node.kubectl("exec", "web", "--", "true").returncode == 0
    after = node.wait_for("web", is_ready)
    assert status_of(after)["containerID"] == before
    assert status_of(after)["restartCount"] == 0


def test_the_pods_of_another_kubelet_are_left_alone(node: Cluster) -> None:
    channel = RuntimeChannel(node.machine.endpoint)
    other = CRIRuntime(
        channel, owner="other", host_ip="", cgroups=PodCgroups("kcm-test-other", "cgroupfs", None)
    )
    config = cri.SandboxConfig(
        "theirs", "default", "their-uid", log_directory=str(node.folder / "t")
    )
    sandbox = other.run_pod_sandbox(config)
    try:
        # This pod comes and goes, so the kubelet has looked at all pods after the other's began.
        node.create("passing", shell("true"), restartPolicy="Never")
        node.wait_until_done("passing")
        node.delete("passing")
        (seen,) = other.list_pod_sandboxes()
        assert (seen.id, seen.state) == (sandbox, cri.SandboxState.READY)
    finally:
        other.remove_pod_sandbox(sandbox)
        channel.close()


def test_the_end_of_a_container_is_an_event_where_the_runtime_has_them(node: Cluster) -> None:
    channel = RuntimeChannel(node.machine.endpoint)
    events = ContainerEvents(channel, {OWNER: identify(node.kubelet_root)}, RealClock())
    stop, reported = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(events.run, stop, reported.set)
        try:
            node.create("brief", shell("true"), restartPolicy="Never")
            node.wait_until_done("brief")
            has_events = channel.call("Version").runtime_version.lstrip("v") >= "1.7"
            if has_events:
                assert reported.wait(PATIENCE)
            assert reported.is_set() == has_events
        finally:
            stop.set()
            events.close()
        run.result(PATIENCE)
    channel.close()
    node.delete("brief")


def test_images_that_containers_and_sandboxes_use_are_known(node: Cluster) -> None:
    channel = RuntimeChannel(node.machine.endpoint)
    store = CRIImages(channel)
    used, present = store.list_used(), store.list()
    channel.close()
    pinned = {tag for image in present if image.pinned for tag in image.tags}
    assert images.PAUSE in used | pinned  # containerd pins it from 1.7 on
    assert any(images.BUSYBOX in image.tags and image.id in used for image in present)
    names = node.run("get", "nodes", "-o", "jsonpath={.items[*].status.images[*].names}")
    assert images.BUSYBOX in names


def test_nothing_is_left_of_pods_that_are_gone(node: Cluster) -> None:
    node.create(
        "rich",
        shell(WAIT, volumeMounts=[
            {"name": "memory", "mountPath": "/memory"},
            {"name": "disk", "mountPath": "/part", "subPath": "a/b"},
        ]),
        volumes=[
            {"name": "memory", "emptyDir": {"medium": "Memory"}},
            {"name": "disk", "emptyDir": {}},
        ],
    )  # fmt: skip
    node.wait_until_ready("rich")
    mounts = node.machine.run(["cat", "/proc/self/mountinfo"])
    assert "volume-subpaths" in mounts
    node.run("delete", "pod", "--all", "--wait=true")
    until(lambda: not node.machine.list_processes("containerd-shim"), "shims are left", PATIENCE)
    assert str(node.kubelet_root) not in node.machine.run(["cat", "/proc/self/mountinfo"])
    assert "veth" not in node.machine.run(["ip", "link"])
    assert list((node.kubelet_root / "pods").iterdir()) == []
    # What the runtime has of them goes with the kubelet's next collection of garbage.
    until(lambda: not list(Path("/sys/fs/cgroup").glob(f"*/{GROUP}/*/")), "groups", PATIENCE)
    until(lambda: not list((node.kubelet_root / "logs").iterdir()), "logs are left", PATIENCE)
