"""The files of a StatefulSet survive a lost node and a restart of everything."""

from __future__ import annotations

import pytest

from kcm.testing.waiting import until
from tests.scenarios.system import System, system
from tests.scenarios.test_kubelets import Kubelet
from tests.scenarios.test_storage import CLASS, FLAGS, SET, kubelet, started

__all__ = ["kubelet", "system"]


def waits(system: System) -> bool:
    """Whether the set's next pod waits for the node that has its volume."""
    pods = system.items("pods")
    return bool(pods) and not any("nodeName" in pod["spec"] for pod in pods)


@pytest.mark.chaos
def test_files_survive_a_lost_node_and_a_restart_of_everything(
    system: System, kubelet: Kubelet
) -> None:
    system.apply(CLASS)
    system.apply(SET % "up")
    until(lambda: started(system) == [["up"]] * 2, "that both pods write")

    kubelet.kill()
    until(lambda: waits(system), "that the node is given up")
    kubelet.start()
    until(lambda: started(system) == [["up"] * 2] * 2, "that the lost pods start again")

    kubelet.end()
    system.stop()
    system.start(*FLAGS)
    kubelet.start()
    until(lambda: started(system) == [["up"] * 3] * 2, "that everything starts again")
