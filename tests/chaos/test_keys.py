"""Keys of Redis that are taken away or replaced while everything runs."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.chaos import workload
from tests.chaos.cluster import Cluster

# What other keys hold is made anew by those who use it. These are what there is: whoever
# takes one of them away takes objects away.
KEPT = ("kcm:object:", "kcm:keys:", "kcm:index:")
# One of each of these stands for all.
ALIKE = ("kcm:call:", "kcm:watch:", "kcm:memory:", "kcm:charged:", "kcm:lease:", "kcm:celery:_")


def targets(cluster: Cluster, *, lists: bool) -> list[str]:
    """Every key that is not an object's, one of each sort; `lists` and indexes of objects too."""
    targets_by_prefix: dict[str, str] = {}
    for key in sorted(cluster.io.scan("kcm:*")):
        if key.startswith(KEPT):
            continue
        alike = next((prefix for prefix in ALIKE if key.startswith(prefix)), key)
        if key.startswith("kcm:queue:") and not key.startswith("kcm:queue:replicaset:"):
            continue
        targets_by_prefix.setdefault(alike, key)
    targets_by_prefix["kcm:watch:pods"] = "kcm:watch:pods"
    targets_by_prefix["kcm:lease:ingest"] = "kcm:lease:ingest"
    if lists:
        targets_by_prefix["kcm:keys:pods"] = "kcm:keys:pods"
        owner = next(iter(cluster.io.scan("kcm:index:owner:*")), None)
        targets_by_prefix["kcm:index:"] = owner or "kcm:index:owner:x"
    return sorted(set(targets_by_prefix.values()))


@pytest.mark.chaos
@pytest.mark.parametrize("harm", [("DEL",), ("SET", "x"), ("RPUSH", "x"), ("HSET", "x", "x")])
def test_the_world_is_exact_after_any_key_is_harmed(
    cluster: Cluster, harm: tuple[str, ...]
) -> None:
    rng, wrong = random.Random(11), []
    for key in targets(cluster, lists=harm[0] != "DEL"):
        workload.stir(cluster, rng, steps=4)
        with cluster.io.driver.pipeline(transaction=True) as transaction:
            queue: Callable[..., object] = transaction.execute_command
            queue("DEL", key)
            queue(harm[0], key, *harm[1:])
            transaction.execute()
        workload.stir(cluster, rng, steps=4)
        try:
            cluster.settle()
        except AssertionError as error:
            wrong.append(f"{key}: {str(error).splitlines()[0]}")
            cluster.io.execute("DEL", key)
    assert wrong == []
