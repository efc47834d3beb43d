"""What users do while things break: scale, delete pods, delete and create ReplicaSets."""

from __future__ import annotations

import random

from kcm import errors
from kcm.store import DeleteOptions
from tests.chaos.world import PODS, SETS, World
from tests.new_objects import replica_set

NAMES = ("ant", "bee", "cat")


def prepare(world: World) -> None:
    """Creates the ReplicaSets that `stir` changes."""
    for name in NAMES:
        world.store.create(replica_set(name, replicas=5))


def stir(world: World, rng: random.Random, steps: int = 12) -> None:
    """Makes some random changes. After one that meets an outage it makes no more."""
    for _ in range(steps):
        try:
            _change(world, rng)
        except (errors.NotFound, errors.AlreadyExists, errors.Conflict):
            continue
        except errors.Temporary:
            return


def _change(world: World, rng: random.Random) -> None:
    name = rng.choice(NAMES)
    match rng.randrange(5):
        case 0 | 1:
            world.store.patch(SETS, f"default/{name}", {"spec": {"replicas": rng.randrange(30)}})
        case 2 | 3:
            pods = world.pods_of(name)
            for pod in rng.sample(pods, min(3, len(pods))):
                world.store.delete(PODS, pod.key, DeleteOptions(uid=pod.uid))
        case _:
            world.store.delete(SETS, f"default/{name}")
            world.store.create(replica_set(name, replicas=rng.randrange(20)))
