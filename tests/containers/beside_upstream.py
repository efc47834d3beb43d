"""Measures kcm's kubelet and upstream's on one containerd, in turns.

    python -m tests.containers.beside_upstream --kubelet PROGRAM [--rounds 5] [--idle 60]

PROGRAM is upstream's kubelet. Both report to the API server of one `kcm up`, on a machine of
`tests.containers.machine`. A round of each: PODS pods of one container are created on the node, and
the time until all are ready is taken; there are IDLE_PODS then, and the CPU of the kubelet's
process over `--idle` seconds is taken from /proc; last, ENDS containers end one after the other,
and the time is taken until a watch of the API server says so.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from kcm.kubelet.runtime.process.cgroups import remove_tree
from kcm.testing.waiting import let_time_pass, until
from tests.containers.cluster import GROUP, Cluster, build_pod, shell
from tests.containers.machine import ADDRESS
from tests.scenarios.system import KCM

PODS, IDLE_PODS, ENDS = 30, 50, 3
SETTLE = 15.0  # seconds until an idle kubelet is measured
LONG = 300.0  # seconds, on a busy machine
WAIT = "while true; do sleep 10000 & wait; done"
# What upstream's kubelet would change belongs to the whole machine: it finds what it wants.
_KERNEL = {"vm/overcommit_memory": 1, "kernel/panic": 10, "kernel/panic_on_oops": 1}


class Rig(Cluster):
    """A machine with a control plane, and one kubelet of either kind at a time."""

    def __init__(self, folder: Path, program: str) -> None:
        super().__init__(folder, "--end-containers")
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    def start_kubelet(self) -> None:
        """Starts kcm's kubelet, as a client of the API server."""
        config = self.state_dir / "kubeconfig"
        self._start("kcm", [
            *(*KCM, "kubelet", "--kubeconfig", str(config), "--node-name", "kcm"),
            *("--node-ip", ADDRESS, "--eviction-hard", "", "--image-gc-high-threshold", "100"),
            *("--container-runtime-endpoint", self.machine.endpoint, "--cgroup-root", GROUP),
            *("--root-dir", str(self.kubelet_root)),
        ])  # fmt: skip

    def start_upstream(self) -> None:
        """Starts upstream's kubelet."""
        group = f"{GROUP}-upstream"
        for hierarchy in Path("/sys/fs/cgroup").iterdir():
            (hierarchy / group).mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            top = Path("/sys/fs/cgroup/cpuset")
            (top / group / name).write_text((top / name).read_text())
        for name, value in _KERNEL.items():
            file = self.folder / name.replace("/", ".")
            if not file.exists():
                file.write_text(f"{value}\n")
                self.machine.run(["mount", "--bind", str(file), f"/proc/sys/{name}"])
        config = self.folder / "kubelet.json"
        config.write_text(json.dumps(self._build_config(group)))
        self._start("upstream", [
            *(self._program, "--config", str(config), "--hostname-override", "upstream"),
            *("--kubeconfig", str(self.state_dir / "kubeconfig"), "--node-ip", ADDRESS),
            *("--root-dir", str(self.folder / "upstream"), "--v=1"),
        ])  # fmt: skip

    def _build_config(self, group: str) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": self.machine.endpoint,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{group}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "evictionHard": {"memory.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "clusterDNS": ["10.96.0.10"],
            "clusterDomain": "cluster.local",
            "resolvConf": "/etc/resolv.conf",
        }

    def _start(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as out:
            self._process = subprocess.Popen(
                self.machine.command(command), env=self.env, stdout=out, stderr=out
            )

    def find_kubelet(self, name: str) -> psutil.Process:
        """Returns the process of the kubelet of that kind."""
        words = "kcm.cli.main kubelet" if name == "kcm" else f"{self._program} --config"
        pids = [p for p in self.machine.list_processes(words) if psutil.Process(p).name() != "sh"]
        assert len(pids) == 1, pids
        return psutil.Process(pids[0])

    def stop_kubelet(self, name: str) -> None:
        """Ends the kubelet, and removes its node."""
        self.find_kubelet(name).send_signal(signal.SIGTERM)
        assert self._process is not None
        self._process.wait(LONG)
        self.run("delete", "node", name)

    def wait_until_all_ready(self) -> None:
        """Waits for all pods, in kubectl, which watches them."""
        command = ("wait", "--for=condition=Ready", "pod", "--all", "--timeout=80s")
        until(lambda: self.kubectl(*command).returncode == 0, "all pods ready", LONG)

    def list_pods(self) -> list[str]:
        """Returns the names of all pods."""
        return self.run("get", "pods", "-o", "name").split()

    def stop(self) -> None:
        super().stop()
        for group in Path("/sys/fs/cgroup").glob(f"*/{GROUP}-upstream"):
            remove_tree(group)


def measure_round(rig: Rig, name: str, start: Callable[[], None], idle: float) -> list[float]:
    """Returns the seconds until PODS are ready, the percents of a core, the seconds of an end."""
    start()
    until(lambda: rig.node_condition()[:1] == ("True",), f"node {name}", LONG)
    pods = [build_pod(f"p{n}", shell(WAIT), nodeName=name) for n in range(IDLE_PODS)]
    for pod in pods:
        del pod["spec"]["automountServiceAccountToken"]
    began = time.monotonic()
    rig.create_all(pods[:PODS])
    rig.wait_until_all_ready()
    ready = time.monotonic() - began
    rig.create_all(pods[PODS:])
    rig.wait_until_all_ready()
    let_time_pass(SETTLE, "what the start has left to do")
    process = rig.find_kubelet(name)
    before, at = process.cpu_times(), time.monotonic()
    let_time_pass(idle, "the measured time")
    after, elapsed = process.cpu_times(), time.monotonic() - at
    used = after.user + after.system - before.user - before.system
    rig.run("delete", "pod", "--all", "--wait=false")
    until(lambda: not rig.list_pods(), "the end of the pods", LONG)
    ended = statistics.median(measure_end(rig, name, n) for n in range(ENDS))
    rig.stop_kubelet(name)
    return [ready, 100 * used / elapsed, ended]


def measure_end(rig: Rig, name: str, number: int) -> float:
    """Returns the seconds from a container's exit until a watch of the API server has it."""
    mark = rig.folder / f"mark-{name}-{number}"
    with suppress(FileNotFoundError):
        mark.unlink()
    pod = build_pod(
        "ends", shell("while ! [ -e /marks/" + mark.name + " ]; do sleep 0.01; done",
                      volumeMounts=[{"name": "marks", "mountPath": "/marks"}]),
        nodeName=name, restartPolicy="Never",
        volumes=[{"name": "marks", "emptyDir": {}}],
    )  # fmt: skip
    rig.create_all([pod])
    rig.wait_until_all_ready()
    let_time_pass(
        1.5 + 0.137 * number, "the moment of the exit"
    )  # at another moment of the kubelet's second each time
    command = rig.kubectl_command(
        "get", "pod", "ends", "-w", "-o", 'jsonpath={.status.phase}{"\\n"}'
    )
    with subprocess.Popen(command, env=rig.env, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline() == "Running\n"
        root = rig.kubelet_root if name == "kcm" else rig.folder / "upstream"
        (volume,) = root.glob("pods/*/volumes/kubernetes.io~empty-dir/marks")
        began = time.monotonic()
        (volume / mark.name).touch()
        while watch.stdout.readline() != "Succeeded\n":
            pass
        ended = time.monotonic() - began
        watch.kill()
    rig.run("delete", "pod", "ends", "--wait=false")
    until(lambda: not rig.list_pods(), "the end of the pod", LONG)
    return ended


def main() -> None:
    """Measures, and prints a line for each round and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubelet", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--idle", type=float, default=60.0)
    options = parser.parse_args()
    results: dict[str, list[list[float]]] = {"kcm": [], "upstream": []}
    with tempfile.TemporaryDirectory(prefix="kcm-beside-", ignore_cleanup_errors=True) as folder:
        rig = Rig(Path(folder), options.kubelet)
        try:
            rig.start()
            rig.stop_kubelet("kcm")
            for _ in range(options.rounds):
                for name, start in (("kcm", rig.start_kubelet), ("upstream", rig.start_upstream)):
                    row = measure_round(rig, name, start, options.idle)
                    results[name].append(row)
                    write(f"{name} {[round(each, 2) for each in row]}, load {os.getloadavg()[0]}")
        finally:
            rig.stop()
    for number, what in enumerate(("30 ready, s", "CPU, %", "end seen, s")):
        kcm, upstream = (
            statistics.median(row[number] for row in results[name]) for name in results
        )
        write(f"{what}: kcm {kcm:.2f}, upstream {upstream:.2f}, ratio {kcm / upstream:.2f}")


def write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
