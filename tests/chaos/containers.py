"""Kills kubelet, container runtime and both while 50 pods start and end, and counts what is left.

    python -m tests.chaos.containers --kills 100

It runs on a machine of `tests.containers`, with the containerd of the PATH. A round creates 25
pods, deletes the 25 of the round before, kills while that happens, starts what was killed, and
waits until everything is as the API says. Each start of a container writes a line, so that one too
many is seen.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kcm.api.core_v1 import ContainerState, Event, Pod
from kcm.kubelet.runtime.cri.channel import CallFailed, RuntimeChannel
from kcm.testing.waiting import let_time_pass, until
from tests.containers.cluster import GROUP, Cluster, Json, build_pod, shell

PODS = 25  # that start in a round, while as many end
PATIENCE = 240.0  # seconds until a round is over, on a busy machine
VICTIMS = ("kubelet", "runtime", "both")
_MARK = f"kcm-chaos-{os.getpid()}"  # in the command line of each container's first process


@dataclass
class Outcome:
    """What was seen in all rounds."""

    kills: Counter[str] = field(default_factory=Counter)
    pods: int = 0
    remade: int = 0  # containers that were made, and never started
    codes_lost: int = 0  # containers that ended while containerd was away, which lost their codes
    # Containers that containerd, killed, has started, and calls created or unknown.
    states_lost: int = 0
    networks_left: int = 0  # network namespaces without a device, which containerd has forgotten
    restarted: list[str] = field(default_factory=list)  # did not start exactly once
    doubled: list[str] = field(default_factory=list)  # two processes of one container at once
    failed: list[str] = field(default_factory=list)  # pods that ended in another way than they do
    left: list[str] = field(default_factory=list)  # what nobody has removed


class ContainerChaos:
    """Rounds of kills on one cluster, whose kubelet is a process of its own."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)
        self._marks = cluster.folder / "host" / "marks"
        self._marks.mkdir(parents=True)
        self._channel = RuntimeChannel(cluster.machine.endpoint)
        self._old: list[str] = []
        self._noted: set[str] = set()
        self.outcome = Outcome()

    def run_round(self, number: int) -> None:
        """Runs one round. Raises AssertionError if the pods do not come to rest."""
        pods = [self._build_pod(number, index) for index in range(PODS)]
        names = [pod["metadata"]["name"] for pod in pods]
        self._cluster.create_all(pods)
        if self._old:
            self._cluster.run("delete", "pod", "--wait=false", *self._old)
        for _ in range(self._random.choice((1, 2, 3))):
            let_time_pass(self._random.uniform(0.0, 8.0), "pods start and end")
            self._kill(self._random.choice(VICTIMS))
        gone, self._old = self._old, names
        self.outcome.pods += len(names)
        until(lambda: self._is_settled(names, gone), f"round {number}", PATIENCE, self._describe)
        self._check_starts(names)
        self._check_left(f"round {number}")

    def finish(self) -> Outcome:
        """Deletes all pods, and looks for what is left of them."""
        self._cluster.run("delete", "pod", "--all", "--wait=false")
        until(lambda: not self._list_pods(), "the last pods", PATIENCE, self._describe)
        with suppress(AssertionError):  # the kubelet looks for garbage and shims once a minute
            until(lambda: not self._find_all_left(), "", 240.0)
        self.outcome.left += self._find_all_left()
        spaces = self._cluster.machine.run(["sh", "-c", "ls /run/netns 2>/dev/null || true"])
        self.outcome.networks_left = len(spaces.split())
        self._channel.close()
        return self.outcome

    # --- pods

    def _build_pod(self, number: int, index: int) -> Json:
        """Returns a pod that runs on, or that ends by itself with its own code."""
        name = f"r{number}-{index}"
        ends = index % 3 == 0
        mounts = [
            {"name": "marks", "mountPath": "/marks"},
            {"name": "memory", "mountPath": "/memory"},
            {"name": "disk", "mountPath": "/part", "subPath": "a/b"},
        ]
        rest = f"sleep {index % 4}; exit {index % 2}" if ends else "while :; do sleep 1; done"
        first = shell(f"echo first >> /marks/{name}", "first", volumeMounts=mounts[:1])
        return build_pod(
            name,
            shell(f"echo main >> /marks/{name}; {rest} # {_MARK} {name}", volumeMounts=mounts),
            nodeName="desk",
            restartPolicy="Never" if ends else "Always",
            initContainers=[first] if index % 5 == 0 else [],
            volumes=[
                {"name": "marks", "hostPath": {"path": str(self._marks)}},
                {"name": "memory", "emptyDir": {"medium": "Memory"}},
                {"name": "disk", "emptyDir": {}},
            ],
        )

    def _list_pods(self) -> Mapping[str, Pod]:
        listed = self._cluster.store.list(Pod.resource, namespace="default").items
        return {pod.metadata.name or "": pod for pod in listed}

    def _is_settled(self, names: Sequence[str], gone: Sequence[str]) -> bool:
        pods = self._list_pods()
        return not pods.keys() & {*gone} and all(_is_at_rest(pods[name]) for name in names)

    def _describe(self) -> str:
        pods = self._list_pods().values()
        waiting = [pod for pod in pods if pod.deleting or not _is_at_rest(pod)]
        return "\n".join(f"{pod.metadata.name} {pod.deleting} {pod.status}" for pod in waiting)

    def _check_starts(self, names: Sequence[str]) -> None:
        """Compares what containers wrote, and what runs of them, with what their pods say."""
        pods = self._list_pods()
        running, lost = Counter(self._list_running()), self._list_states_lost()
        for name in names:
            status = pods[name].status
            statuses = status.container_statuses or []
            marks = self._marks / name
            starts = marks.read_text().split().count("main") if marks.exists() else 0
            restarts = statuses[0].restart_count or 0
            ends = pods[name].spec.restart_policy == "Never"
            of_containers = [*(status.init_container_statuses or ()), statuses[0]]
            states = [one.state for one in of_containers]
            if ends and not starts and any(map(_has_lost_code, states)):
                self.outcome.codes_lost += 1  # its pod has failed, as a container seems to
                continue
            last = statuses[0].last_state
            forgotten = not (last and last.terminated) or _has_lost_code(last)
            if starts == 2 and restarts and (forgotten or name in lost):
                self.outcome.states_lost += 1  # made anew, as upstream's kubelet does
            elif starts != 1:
                self.outcome.restarted.append(f"{name}: {starts} starts, {states}")
            # One that was made, and not started, counts as an attempt, as upstream.
            self.outcome.remade += restarts
            if running[name] != (0 if ends else 1):
                self.outcome.doubled.append(f"{name}: {running[name]} processes")
            state = statuses[0].state
            end = state.terminated if state else None
            if ends and _has_lost_code(state):
                self.outcome.codes_lost += 1
            elif ends and (not end or end.exit_code != int(name.rpartition("-")[2]) % 2):
                self.outcome.failed.append(f"{name}: {state}")
        self.outcome.doubled += [f"{name}: deleted, and runs" for name in running.keys() - {*names}]

    def _list_states_lost(self) -> set[str]:
        """Returns the pods with containers whose state containerd has lost, as their Events say."""
        events = self._cluster.store.list(Event.resource, namespace="default").items
        said = "is in unknown state"
        return {e.involved_object.name or "" for e in events if said in (e.message or "")}

    def _list_running(self) -> list[str]:
        """Returns the pods of the containers that run. They have processes of their own spaces."""
        names = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if len(words) == 4 and _MARK in words[2]:
                    # A shell that is about to become another program is a child of the same space.
                    inside = re.search(r"^NSpid:.*\t(\d+)$", (entry / "status").read_text(), re.M)
                    if inside and inside[1] == "1":
                        names.append(words[2].rpartition(_MARK)[2].strip())
        return names

    # --- kills

    def _kill(self, victim: str) -> None:
        """Kills, and starts again after a while."""
        self.outcome.kills[victim] += 1
        starts: list[Callable[[], None]] = []
        if victim != "runtime":
            self._cluster.kill_kubelet()
            starts.append(self._cluster.start_kubelet)
        if victim != "kubelet":
            self._cluster.machine.kill_containerd()
            # The kubelet does not start without a runtime.
            starts.insert(0, self._cluster.machine.start_containerd)
        let_time_pass(self._random.choice((0.0, 0.5, 3.0)), "it is away")
        for start in starts:
            start()

    # --- what is left

    def _check_left(self, when: str) -> None:
        """Notes what belongs to no sandbox that is ready, once the kubelet had time for it."""
        with suppress(AssertionError):
            until(lambda: not self._find_left() - self._noted, "", 30.0)
        new = self._find_left() - self._noted
        self._noted |= new
        self.outcome.left += [f"{when}: {each}" for each in sorted(new)]

    def _find_left(self) -> set[str]:
        """Returns devices without a sandbox, and mounts and groups without a pod."""
        try:
            listed = self._channel.call("ListPodSandbox").items
        except CallFailed:
            return {"the runtime does not answer"}
        ready = {sandbox.id for sandbox in listed if not sandbox.state}
        uids = {pod.metadata.uid for pod in self._list_pods().values()}
        run = self._cluster.machine.run
        devices = len(re.findall("^[0-9]+: veth", run(["ip", "-o", "link"]), re.MULTILINE))
        left = [f"{devices} veth, {len(ready)} ready"] if devices > len(ready) else []
        pods = re.escape(str(self._cluster.kubelet_root / "pods"))
        mounts = self._cluster.machine.run(["cat", "/proc/self/mountinfo"])
        left += [
            f"mount of {uid}" for uid in re.findall(f"{pods}/([^/ ]+)", mounts) if uid not in uids
        ]
        groups = {path.name.removeprefix("pod") for path in _list_groups()}
        with_sandbox = {sandbox.metadata.uid for sandbox in listed}
        return {*left, *(f"group {uid}" for uid in groups - uids - with_sandbox)}

    def _find_all_left(self) -> list[str]:
        """Returns what is left when there are no pods."""
        left = sorted(self._find_left() - self._noted)
        for name in ("ListPodSandbox", "ListContainers"):
            answer = self._channel.call(name)
            each = answer.items if name == "ListPodSandbox" else answer.containers
            left += [f"{name}: {len(each)}"] if each else []
        left += [f"group {path}" for path in _list_groups()]
        left += [f"shim {pid}" for pid in self._cluster.machine.list_processes("containerd-shim")]
        for folder in ("pods", "logs"):
            left += [str(path) for path in (self._cluster.kubelet_root / folder).iterdir()]
        return left + [f"process of {name}" for name in self._list_running()]


def _has_lost_code(state: ContainerState | None) -> bool:
    """Reports whether a container ended, as containerd says, with a code of containerd's own: it
    was killed, or the kubelet that started the container was, and the start was cut or forgotten.
    """
    end = state.terminated if state else None
    if end is None:
        return False
    if end.started_at is None:
        return end.reason != "StartError" or ": context canceled" in (end.message or "")
    return (end.exit_code, end.reason) == (255, "Unknown")


def _is_at_rest(pod: Pod) -> bool:
    """Reports whether the pod runs, or has ended if it shall."""
    if pod.spec.restart_policy == "Never":
        return pod.status.phase in ("Succeeded", "Failed")
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or ())


def _list_groups() -> list[Path]:
    """Returns the control groups of pods."""
    roots = list(Path("/sys/fs/cgroup").glob(f"*/{GROUP}"))
    return [path for root in roots for path in (*root.glob("pod*"), *root.glob("*/pod*"))]


def main() -> None:
    """Runs the rounds, and prints what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where logs are left; it must be short")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kcm-ck-", ignore_cleanup_errors=True) as folder:
        cluster = new_cluster(options.folder or Path(folder))
        try:
            cluster.start()
            chaos = ContainerChaos(cluster, options.seed)
            number = 0
            while chaos.outcome.kills.total() < options.kills:
                began = time.monotonic()
                chaos.run_round(number)
                seconds = round(time.monotonic() - began, 1)
                sys.stdout.write(f"{number}: {seconds} s, {chaos.outcome}\n")
                sys.stdout.flush()
                number += 1
            sys.stdout.write(f"{chaos.finish()}\n")
        finally:
            cluster.stop()


def new_cluster(folder: Path) -> Cluster:
    """Returns a cluster whose pods may use its folder `host`."""
    return Cluster(folder, f"--allowed-host-paths={folder / 'host'}")


if __name__ == "__main__":
    main()
