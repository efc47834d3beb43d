"""Workers, managers and the driver are killed while disks are made, attached and detached.

No disk is ever on two nodes, none is left without its claim, and each pod runs on its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from kcm.store.admission import namespaces
from kcm.testing.waiting import until
from tests.chaos import faults
from tests.chaos.cluster import Cluster
from tests.chaos.disks import NAMES, Disks


@pytest.fixture
def disks() -> Iterator[Disks]:
    cluster = Cluster(workers=1, beats=1)
    disks: Disks | None = None
    try:
        cluster.start()
        namespaces.ensure(cluster.store)
        disks = Disks(cluster)
        yield disks
    finally:
        if disks is not None:
            disks.kill()
        cluster.stop()


def settle(disks: Disks) -> None:
    until(lambda: not disks.faults(), "an exact world", words=lambda: str(disks.faults()))


def finish(disks: Disks) -> None:
    """Checks the world, and that nothing is left when all claims are deleted."""
    for name in NAMES:
        disks.ask_for(name)
    settle(disks)
    disks.drop_all()
    until(lambda: disks.left() == 0, "that nothing is left")
    assert disks.log.doubled == []
    assert disks.log.seen >= len(NAMES)


def test_kills_leave_each_disk_on_one_node_and_none_behind(disks: Disks) -> None:
    rng = random.Random(5)
    disks.stir(rng, steps=20)
    for kill in (faults.kill_a_pool_child, faults.kill_a_manager):
        kill(disks.cluster, rng)
        disks.stir(rng, steps=10)
        disks.kill()
        disks.start()
        disks.stir(rng, steps=5)
    finish(disks)


@pytest.mark.chaos
def test_kills_again_and_again_leave_each_disk_on_one_node(disks: Disks) -> None:
    rng = random.Random(6)
    kills = (
        faults.kill_a_pool_child,
        faults.kill_a_worker,
        faults.kill_a_manager,
        faults.kill_the_server,
        faults.cut_every_connection,
        lambda cluster, rng: disks.kill(),
    )
    for number in range(30):
        disks.stir(rng, steps=15)
        kills[number % len(kills)](disks.cluster, rng)
        disks.start()
        disks.cluster.start()
        disks.stir(rng, steps=15)
        if number % 6 == 5:
            settle(disks)
    finish(disks)
