"""A real node in the cluster to be broken, and a ReplicaSet whose pods are processes on it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from kcm import errors
from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Container, PodSpec, PodTemplateSpec
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.kubelet.runtime.ending import end_node
from kcm.store import Store
from tests.new_objects import replica_set

NODE = SET = "real"
SETS = ReplicaSet.resource

Spawn = Callable[[str, list[str]], psutil.Popen]


class RealNode:
    """Runs a kubelet that is started again like the other processes, once it is wanted."""

    def __init__(self, folder: Path, store: Store, spawn: Spawn) -> None:
        self._root = folder / "kubelet"
        self._store = store
        self._spawn = spawn
        self._seconds = f"{10**6 + int.from_bytes(folder.name.encode()[-4:], 'big')}"
        self.process: psutil.Popen | None = None
        self.wanted = False

    def start(self) -> None:
        """Starts the kubelet if it is wanted and does not run."""
        if not self.wanted or (self.process is not None and self.process.poll() is None):
            return
        flags = [f"--node-name={NODE}", f"--root-dir={self._root}", "--port=0"]
        flags.append("--eviction-hard=")  # how full the machine is is not the matter
        command = [sys.executable, "-W", "ignore", "-m", "kcm.cli.main", "kubelet", *flags]
        self.process = self._spawn("kubelet", command)

    def scale(self, replicas: int) -> None:
        """Asks for so many pods on the node."""
        try:
            self._store.patch(SETS, f"default/{SET}", {"spec": {"replicas": replicas}})
        except errors.NotFound:
            self._store.create(replica_set(SET, replicas=replicas, template=self._template()))

    def _template(self) -> PodTemplateSpec:
        container = Container(name="main", image="none", command=["sleep", self._seconds])
        spec = PodSpec(node_name=NODE, containers=[container], termination_grace_period_seconds=1)
        return PodTemplateSpec(metadata=ObjectMeta(labels={"app": SET}), spec=spec)

    def count_running(self) -> int:
        """Returns how many containers run, whoever started them."""
        count = 0
        for process in psutil.process_iter(["cmdline"]):
            count += process.info["cmdline"] == ["sleep", self._seconds]
        return count

    def kill(self) -> None:
        """Kills the kubelet."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def faults(self) -> list[str]:
        """Returns what runs too much or too little."""
        if not self.wanted:
            return []
        obj = self._store.get(SETS, f"default/{SET}")
        assert isinstance(obj, ReplicaSet)
        wanted, running = obj.spec.replicas, self.count_running()
        return [] if running == wanted else [f"{running} processes run for {wanted} pods"]

    def end(self) -> None:
        """Kills the kubelet and all that it has started."""
        self.kill()
        end_node(self._root)
