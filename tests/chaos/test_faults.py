"""Faults against real processes: afterwards every count is exact, with no manual step."""

from __future__ import annotations

import random

import pytest

from tests.chaos import faults, workload
from tests.chaos.cluster import Cluster
from tests.chaos.faults import FAULTS, Fault

# What threads may take otherwise than children: the manager is hit with them.
HIT_THREADS = (
    faults.kill_a_worker,
    faults.freeze_a_process,
    faults.cut_every_connection,
    faults.kill_the_server,
    faults.half_open_link,
)


def break_something(cluster: Cluster, fault: Fault, seed: int) -> float:
    rng = random.Random(seed)
    workload.stir(cluster, rng)
    fault(cluster, rng)
    workload.stir(cluster, rng)
    return cluster.settle()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_world_is_exact_after(cluster: Cluster, fault: Fault) -> None:
    break_something(cluster, fault, seed=7)


@pytest.mark.parametrize("fault", HIT_THREADS, ids=lambda fault: fault.__name__)
def test_the_world_is_exact_with_syncs_in_threads_after(threaded: Cluster, fault: Fault) -> None:
    break_something(threaded, fault, seed=7)


@pytest.mark.chaos
def test_the_world_is_exact_after_a_long_half_open_link(cluster: Cluster) -> None:
    break_something(cluster, faults.long_half_open_link, seed=8)


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(60))
def test_the_world_is_exact_after_random_faults(cluster: Cluster, seed: int) -> None:
    break_something(cluster, random.Random(seed).choice(FAULTS), seed)


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(60, 90))
def test_the_world_is_exact_with_syncs_in_threads_after_random_faults(
    threaded: Cluster, seed: int
) -> None:
    break_something(threaded, random.Random(seed).choice(FAULTS), seed)
