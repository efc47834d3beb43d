"""`kcm up --runtime cri` on a machine of its own, and what a reader does with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kcm.kubelet.runtime.cri.services import identify
from kcm.kubelet.runtime.process.cgroups import remove_tree
from kcm.testing.waiting import PATIENCE, until
from tests.containers import images
from tests.containers.machine import ADDRESS, Machine
from tests.scenarios.system import KCM, KUBECTL, Kcm

GROUP = f"kcm-test-{os.getpid()}"  # of pods of a kubelet of its own
Json = dict[str, Any]


class Cluster(Kcm):
    """A machine with containerd, and kcm on it."""

    def __init__(self, folder: Path, *kubelet_flags: str) -> None:
        """With flags, the kubelet is a process of its own instead of one of `kcm up`."""
        super().__init__(folder, folder / "kcm")
        self.machine = Machine(folder / "machine")
        self.kubelet_root = folder / "kubelet"
        self._flags = kubelet_flags
        self._up: subprocess.Popen[bytes] | None = None
        self._kubelet: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts everything, and waits until the node is ready."""
        self.machine.start()
        node = ["--runtime", "cri", "--container-runtime-endpoint", self.machine.endpoint]
        command = [
            *(*KCM, "up", "--nodes", "0", "--flower-port", "0", "--health-port", "0"),
            *("--api-host", ADDRESS, *(["--no-kubelet"] if self._flags else node)),
        ]
        log = self.folder / "up.log"
        with log.open("wb") as out:
            self._up = subprocess.Popen(
                self.machine.command(command), env=self.env, stdout=out, stderr=out
            )
        if self._flags:
            until((self.state_dir / "kubeconfig").exists, "kcm up", PATIENCE, log.read_text)
            self.start_kubelet()
        until(self._is_node_ready, "the node", PATIENCE, log.read_text)

    def start_kubelet(self) -> None:
        """Starts a kubelet, on what an earlier one has left."""
        command = [
            *(*KCM, "kubelet", "--no-celery", "--node-name", "desk", "--eviction-hard", ""),
            *("--container-runtime-endpoint", self.machine.endpoint),
            *("--root-dir", str(self.kubelet_root), "--cgroup-root", GROUP, *self._flags),
        ]
        with (self.folder / "kubelet.log").open("ab") as out:
            self._kubelet = subprocess.Popen(
                self.machine.command(command), env=self.env, stdout=out, stderr=out
            )

    def kill_kubelet(self) -> None:
        """Kills the kubelet. Its containers go on."""
        for pid in self.machine.list_processes("kcm.cli.main kubelet"):
            os.kill(pid, signal.SIGKILL)
        assert self._kubelet is not None
        self._kubelet.wait(PATIENCE)

    def _is_node_ready(self) -> bool:
        assert self._up is not None
        assert self._up.poll() is None, (self.folder / "up.log").read_text()
        if not (self.state_dir / "kubeconfig").exists():
            return False
        return self.node_condition()[:1] == ("True",)

    def node_condition(self) -> tuple[str, str]:
        """Returns status and message of the node's condition Ready, ("", "") without one."""
        done = self.kubectl("get", "nodes", "-o", "json")
        nodes = json.loads(done.stdout)["items"] if done.returncode == 0 else []
        for node in nodes:
            for condition in node["status"].get("conditions", ()):
                if condition["type"] == "Ready":
                    return condition["status"], condition["message"]
        return "", ""

    def stop(self) -> None:
        """Stops kcm as Ctrl-C does, and then the machine."""
        for pid in self.machine.list_processes("kcm.cli.main up"):
            os.kill(pid, signal.SIGINT)
        if self._up is not None:
            self._up.wait(PATIENCE)
        self.machine.stop()
        if self._kubelet is not None:
            self._kubelet.wait(PATIENCE)
        self._remove_groups()

    def _remove_groups(self) -> None:
        """Removes what is left of control groups, which are the host's."""
        roots = [self.kubelet_root, *(self.state_dir / "kubelet").glob("*")]
        names = {GROUP, *(f"kcm-{identify(root)[:8]}" for root in roots)}
        for name in names:
            for group in Path("/sys/fs/cgroup").glob(f"*/{name}"):
                remove_tree(group)

    def kubectl_command(self, *args: str) -> list[str]:
        """Returns the command line of kubectl on the machine."""
        config = f"--kubeconfig={self.state_dir / 'kubeconfig'}"
        return self.machine.command([str(KUBECTL), config, *args])

    def kubectl(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.kubectl_command(*args), input=stdin, env=self.env, capture_output=True, text=True,
            check=False, timeout=90,
        )  # fmt: skip

    def run(self, *args: str, stdin: str = "") -> str:
        """Runs kubectl; returns its output. Raises AssertionError if it fails."""
        done = self.kubectl(*args, stdin=stdin)
        assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def registry(self) -> Iterator[str]:
        """Runs a registry with a password on the machine; yields the name of an image in it."""
        archive = str(self.machine.folder / "images.tar")
        command = [sys.executable, "-m", "tests.containers.registry", archive, "5000"]
        served = subprocess.Popen(
            self.machine.command(command), env=self.env, stderr=subprocess.DEVNULL
        )
        try:
            yield "127.0.0.1:5000/team/app:1"
        finally:
            for pid in self.machine.list_processes("tests.containers.registry"):
                os.kill(pid, signal.SIGKILL)
            served.wait(PATIENCE)

    # --- pods

    def create(self, name: str, *containers: Json, **spec: Any) -> None:
        """Creates a pod."""
        self.create_all([build_pod(name, *containers, **spec)])

    def create_all(self, pods: Sequence[Json]) -> None:
        """Creates pods."""
        whole = {"apiVersion": "v1", "kind": "List", "items": pods}
        self.run("create", "-f", "-", stdin=json.dumps(whole))

    def pod(self, name: str) -> Json:
        """Returns a pod as JSON, {} if there is none."""
        return self.get("pods", name)

    def wait_for(self, name: str, holds: Callable[[Json], object]) -> Json:
        """Waits until `holds` is true of the pod, and returns the pod."""
        last: Json = {}

        def look() -> bool:
            last.clear()
            last.update(self.pod(name))
            return bool(last) and bool(holds(last))

        until(look, f"pod {name}", PATIENCE, lambda: json.dumps(last.get("status"), indent=1))
        return last

    def wait_until_ready(self, name: str) -> Json:
        return self.wait_for(name, is_ready)

    def wait_until_done(self, name: str) -> Json:
        return self.wait_for(name, lambda pod: pod["status"]["phase"] in ("Succeeded", "Failed"))

    def delete(self, *names: str) -> None:
        """Deletes pods, and waits until they are gone."""
        self.run("delete", "pod", *names, "--wait=true")


def build_pod(name: str, *containers: Json, **spec: Any) -> Json:
    """Returns a pod with a short grace period, and without a token."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "containers": list(containers),
            **spec,
        },
    }


def shell(script: str, name: str = "main", **more: Any) -> Json:
    """Returns a container that runs a script."""
    return {"name": name, "image": images.BUSYBOX, "command": ["sh", "-c", script], **more}


def is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def status_of(pod: Json, name: str = "main") -> Json:
    """Returns the status of a container of the pod."""
    kinds = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    statuses = [each for kind in kinds for each in pod["status"].get(kind, ())]
    return next(each for each in statuses if each["name"] == name)
