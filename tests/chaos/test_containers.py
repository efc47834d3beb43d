"""Kubelet and container runtime are killed while pods start and end: nothing is lost or left."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.chaos.containers import ContainerChaos, Outcome, new_cluster
from tests.containers.machine import find_missing
from tests.scenarios.system import KUBECTL

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]
ROUNDS = 2


def test_nothing_is_lost_or_left_of_pods_whose_keepers_are_killed() -> None:
    missing = find_missing() or ("" if KUBECTL else "needs kubectl, see KCM_KUBECTL_DIR")
    if missing:
        pytest.skip(missing)
    with tempfile.TemporaryDirectory(prefix="kcm-ck-") as folder:
        cluster = new_cluster(Path(folder))
        try:
            cluster.start()
            chaos = ContainerChaos(cluster, seed=1)
            for number in range(ROUNDS):
                chaos.run_round(number)
            outcome = chaos.finish()
        finally:
            cluster.stop()
    # What containerd itself loses.
    runtimes = (outcome.codes_lost, outcome.states_lost, outcome.networks_left)
    assert outcome == Outcome(outcome.kills, outcome.pods, outcome.remade, *runtimes), outcome
