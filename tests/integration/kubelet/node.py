"""One real node with a private Redis server, and helpers for tests of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import ContainerStatus, Event, Pod
from kcm.api.scheme import BUILT_IN
from kcm.kubelet.assembly.process import KubeletProcess
from kcm.kubelet.assembly.runtime import new_process_runtime
from kcm.kubelet.eviction.thresholds import EvictionConfig
from kcm.kubelet.options import SIMULATED, KubeletOptions
from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.settings import Settings
from kcm.simulation.runtime.services import new_simulated_services
from kcm.store import DeleteOptions, Store
from kcm.testing.waiting import until

PODS, EVENTS, NODES = (BUILT_IN.by_name(name) for name in ("pods", "events", "nodes"))

# Short waits, so that a crash loop shows within seconds.
QUICK: dict[str, Any] = {
    "sync_frequency": 3.0,
    "back_off_period": 0.4,
    "crash_loop_initial": 1.0,
    "crash_loop_longest": 8.0,
    "file_check_frequency": 1.0,
}
# So that no pod is evicted, however full the machine is that runs the tests.
NO_EVICTIONS = EvictionConfig()


class RealNode:
    """A Redis server with a kubelet, in this process or in one of its own."""

    def __init__(self, folder: Path, name: str = "real-1", **overrides: Any) -> None:
        self.folder = folder
        self.name = name
        self.server = EmbeddedServer(folder / "state")
        self.server.start()
        self.settings = Settings(redis_url=self.server.url, state_dir=folder / "state")
        self.manifests = folder / "manifests"
        self.manifests.mkdir()
        self.options = KubeletOptions(
            node_name=name,
            root_dir=folder / "kubelet",
            pod_manifest_path=self.manifests,
            **{"eviction": NO_EVICTIONS, **QUICK, **overrides},
        )
        self._io = RedisIO(self.settings)
        self.store = Store(self._io)
        self.process: KubeletProcess | None = None
        self.child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts a kubelet in this process."""
        self.process = KubeletProcess(
            self.settings, self.options, runtimes={SIMULATED: new_simulated_services}
        )
        self.process.start()

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()
            self.process = None

    def spawn(self, *more: str) -> None:
        """Starts a kubelet as a process, as `kcm kubelet` does."""
        command = [sys.executable, "-m", "kcm.cli.main", "kubelet"]
        flags = ["--node-name", self.name, "--root-dir", str(self.options.root_dir)]
        flags += ["--eviction-hard", "", *more]
        environment = {
            **os.environ,
            "KCM_REDIS_URL": self.server.url,
            "KCM_STATE_DIR": str(self.settings.state_dir),
        }
        with (self.folder / "kubelet.log").open("ab") as log:
            self.child = subprocess.Popen(
                [*command, *flags], env=environment, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Kills the process of `spawn`."""
        if self.child is not None:
            self.child.send_signal(number)
            self.child.wait(20)
            self.child = None

    def close(self) -> None:
        """Stops everything, and removes what a failed test has left."""
        self.kill()
        self.stop()
        runtime = new_process_runtime(self.options)
        for sandbox in runtime.list_pod_sandboxes():
            runtime.remove_pod_sandbox(sandbox.id)
        self._io.close()
        self.server.stop()

    # --- pods

    def run(
        self,
        name: str,
        *containers: dict[str, Any],
        annotations: dict[str, str] | None = None,
        **spec: Any,
    ) -> Pod:
        """Creates a pod on the node."""
        meta = {"name": name, "namespace": "default", "annotations": annotations or {}}
        whole = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": {
                "nodeName": self.name,
                "terminationGracePeriodSeconds": 5,
                "containers": list(containers),
                **spec,
            },
        }
        obj = self.store.create(codec.decode(json.dumps(whole).encode(), PODS))
        assert isinstance(obj, Pod)
        return obj

    def pod(self, name: str) -> Pod:
        stored = self.store.get(PODS, f"default/{name}")
        assert isinstance(stored, Pod)
        return stored

    def is_gone(self, name: str) -> bool:
        try:
            self.pod(name)
        except errors.NotFound:
            return True
        return False

    def delete(self, name: str, grace: int | None = None) -> None:
        self.store.delete(PODS, f"default/{name}", DeleteOptions(grace_period_seconds=grace))

    def wait_until_pod(self, name: str, holds: Callable[[Pod], object]) -> Pod:
        """Waits until `holds` is true of the pod, and returns the pod."""
        seen: list[Pod] = []

        def look() -> bool:
            try:
                seen[:] = [self.pod(name)]
            except errors.KcmError:
                return False
            return bool(holds(seen[0]))

        until(look, f"{name}: {seen[0].status if seen else 'never seen'}")
        return seen[0]

    def delete_and_wait(self, *names: str) -> None:
        """Deletes pods and waits until they are gone."""
        for name in names:
            self.delete(name)
        for name in names:
            until(partial(self.is_gone, name), f"{name} is still there")

    def log(self, pod: Pod, container: str) -> list[str]:
        """Returns the lines that a container has written, over its restarts."""
        folder = self.options.logs_dir / f"default_{pod.name}_{pod.uid}" / container
        files = sorted(folder.glob("*.log"), key=lambda file: int(file.stem))
        lines = [line for file in files for line in file.read_text().splitlines()]
        return [line.split(" ", 3)[3] for line in lines]

    def reasons(self, pod: Pod) -> list[str]:
        """Returns the reasons of the pod's Events."""
        events = self.store.in_namespace(EVENTS, "default")
        return [
            event.reason or ""
            for event in events
            if isinstance(event, Event) and event.involved_object.uid == pod.uid
        ]


def shell(name: str, script: str, **more: Any) -> dict[str, Any]:
    """Returns a container that runs a script."""
    return {"name": name, "image": "sh", "command": ["sh", "-c", script], **more}


def status(pod: Pod, name: str = "main") -> ContainerStatus:
    """Returns the status of a container or init container of the pod."""
    ordinary, init = pod.status.container_statuses, pod.status.init_container_statuses
    return next(status for status in [*(ordinary or []), *(init or [])] if status.name == name)


def is_ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or ())


def waits_for(pod: Pod) -> str:
    """Returns the reason why the main container waits."""
    if not pod.status.container_statuses:
        return ""
    state = status(pod).state
    return (state.waiting.reason or "") if state and state.waiting else ""
