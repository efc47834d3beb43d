"""Two kubelets over one control plane: one is lost with what it knows, and comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import psutil
import pytest

from kcm.testing.waiting import until
from tests.scenarios.system import KCM, System, system

__all__ = ["system"]

pytestmark = pytest.mark.scenario

REPLICAS = 20
SET = f"""\
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: web}}
spec:
  replicas: {REPLICAS}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 2
      containers: [{{name: main, image: none, command: [sleep, "1000"]}}]
      tolerations:
      - {{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, \
tolerationSeconds: 1}}
      - {{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, \
tolerationSeconds: 60}}
"""
# A silent node is given up after 6 s; leases are renewed every second.
SHORT = ("--", "--node-monitor-grace-period=6s", "--node-monitor-period=1s")
START = ("--nodes=0", "--api-port=0", "--flower-port=0", "--health-port=0", *SHORT)


class Kubelet:
    """One `kcm kubelet`; its node has the same name."""

    def __init__(self, system: System, name: str) -> None:
        self._system = system
        self.name = name
        self.start()

    def start(self) -> None:
        flags = [f"--node-name={self.name}", "--port=0", "--node-lease-duration-seconds=4"]
        with (self._system.folder / f"{self.name}.log").open("ab") as log:
            self.process = psutil.Popen(
                [*KCM, "kubelet", *flags, "--end-containers", "--eviction-hard="],
                env=self._system.env,
                stdout=log,
                stderr=log,
            )

    def below(self) -> set[psutil.Process]:
        """The processes of its containers and those that look after them."""
        processes = set(self.process.children(recursive=True))
        self._system.seen |= processes
        return processes

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)


@pytest.fixture
def kubelets(system: System) -> Iterator[tuple[Kubelet, Kubelet]]:
    system.start(*START)
    pair = (Kubelet(system, "one"), Kubelet(system, "two"))
    try:
        yield pair
    finally:
        for kubelet in pair:
            kubelet.end()


def homes(system: System) -> Counter[str]:
    """How many pods run on each node, those being deleted excepted."""
    return Counter(
        pod["spec"].get("nodeName", "")
        for pod in system.items("pods")
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    )


def runs(processes: set[psutil.Process]) -> Callable[[], bool]:
    def check() -> bool:
        return any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)

    return check


def test_pods_of_a_lost_kubelet_move_and_the_old_ones_end_when_it_returns(
    system: System, kubelets: tuple[Kubelet, Kubelet]
) -> None:
    lost, other = kubelets
    until(lambda: system.kcm("get", "nodes").stdout.count(" Ready") == 2, "two nodes")
    system.apply(SET)
    until(lambda: homes(system).total() == REPLICAS, "all pods")
    assert set(homes(system)) == {"one", "two"}

    old = lost.below()
    lost.kill()
    until(lambda: homes(system) == {"two": REPLICAS}, "that the pods move")
    assert runs(old)(), "nobody can have ended them"
    assert len(system.items("pods")) > REPLICAS, "nobody can have said that they ended"

    lost.start()
    until(lambda: not runs(old)(), "that the old ones are killed")
    until(lambda: len(system.items("pods")) == REPLICAS, "that the old pods are gone")
    assert homes(system) == {"two": REPLICAS}
    other.below()
