"""What users see of a kcm that is broken: ReplicaSets, their pods, and the queues."""

from __future__ import annotations

from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Pod
from kcm.coordination.workqueue import read_stats
from kcm.redisio import RedisIO
from kcm.store import Store

SETS = ReplicaSet.resource
PODS = Pod.resource


class World:
    """The objects of one store, and the queues beside it."""

    def __init__(self, store: Store, io: RedisIO) -> None:
        self.store = store
        self.io = io

    def pods_of(self, name: str) -> list[Pod]:
        """Returns the pods that a ReplicaSet controls and that are not being deleted."""
        owner = self.store.get(SETS, f"default/{name}")
        objects = [
            self.store.get(PODS, key) for _, key in self.store.by_index(f"owner:{owner.uid}", PODS)
        ]
        return [pod for pod in objects if isinstance(pod, Pod) and not pod.deleting]

    def list_faults(self) -> list[str]:
        """Returns what is wrong; nothing when every count is exact and nothing is left over."""
        wrong = []
        owned: set[str] = set()
        for owner in self.store.list(SETS).items:
            assert isinstance(owner, ReplicaSet)
            pods = self.pods_of(owner.name)
            owned.update(pod.key for pod in pods)
            if len(pods) != owner.spec.replicas:
                wrong.append(f"{owner.name}: {len(pods)} pods of {owner.spec.replicas}")
            if owner.status.replicas != owner.spec.replicas:
                wrong.append(f"{owner.name}: status says {owner.status.replicas}")
        left = [pod.key for pod in self.store.list(PODS).items if pod.key not in owned]
        wrong += [f"{key} belongs to nobody" for key in left]
        for stats in read_stats(self.io):
            if stats.depth or stats.running:
                wrong.append(f"queue {stats.name}: {stats.depth} waiting, {stats.running} running")
        return wrong
