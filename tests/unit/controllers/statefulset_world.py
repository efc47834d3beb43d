"""A StatefulSet with its controller and pods in memory, for tests of StatefulSets."""

from __future__ import annotations

from typing import Any

from kcm.api.apps_v1 import (
    ControllerRevision,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetUpdateStrategy,
)
from kcm.api.core_v1 import (
    PersistentVolumeClaim,
    Pod,
)
from kcm.apimachinery.ownership import controller_of
from kcm.controllers.statefulset import StatefulSetController, StatefulSetOptions
from kcm.reconcile.plan import Plan
from kcm.testing.world import World
from tests.set_builders import image_of, kubelet, pods_of, stateful_set, template

CLAIMS = [
    PersistentVolumeClaim.model_validate(
        {
            "metadata": {"name": "data", "labels": {"tier": "db"}},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    )
]


def build_rolling_update(
    partition: int = 0, unavailable: int | str | None = None
) -> dict[str, Any]:
    update = RollingUpdateStatefulSetStrategy(partition=partition, max_unavailable=unavailable)
    return {
        "update_strategy": StatefulSetUpdateStrategy(type="RollingUpdate", rolling_update=update)
    }


ON_DELETE: dict[str, Any] = {"update_strategy": StatefulSetUpdateStrategy(type="OnDelete")}
PARALLEL: dict[str, Any] = {"pod_management_policy": "Parallel"}


def build_retention_policy(when_deleted: str, when_scaled: str) -> dict[str, Any]:
    policy = StatefulSetPersistentVolumeClaimRetentionPolicy(
        when_deleted=when_deleted, when_scaled=when_scaled
    )
    return {
        "volume_claim_templates": CLAIMS,
        "persistent_volume_claim_retention_policy": policy,
    }


class Cluster:
    """A StatefulSet controller in a World; pods with the image `broken` never become ready."""

    def __init__(self, *, gate: bool = False, **fields: Any) -> None:
        owner = stateful_set(**fields)
        self.world, self.key = World(owner), owner.key
        self.controller = StatefulSetController(
            StatefulSetOptions(max_unavailable_stateful_set=gate)
        )
        self.broken = ""
        self.seen: list[str] = []  # what there was after each round
        self.plan = Plan()
        self.events: list[str] = []

    @property
    def stored(self) -> StatefulSet:
        obj = self.world.objects["statefulsets.apps", self.key]
        assert isinstance(obj, StatefulSet)
        return obj

    def sync(self) -> Plan:
        self.plan = self.controller.reconcile(self.key, self.world.view())
        outcome = self.world.carry_out(self.plan)
        derived = self.plan.events_after(outcome)
        self.events += [f"{e.reason}: {e.message}" for e in (*self.plan.events, *derived)]
        return self.plan

    def settle(self, rounds: int = 40) -> None:
        for _ in range(rounds):
            before = dict(self.world.objects)
            self.sync()
            self.seen.append(" ".join(self.names()))
            kubelet(self.world, lambda pod: image_of(pod) == self.broken)
            if self.world.objects == before:
                return

    def change(self, **spec: Any) -> None:
        stateful_set = self.stored
        generation = (stateful_set.metadata.generation or 0) + 1
        self.world.put(
            stateful_set.with_spec(stateful_set.spec.replace(**spec)).with_metadata(
                generation=generation
            ),
        )

    def image(self, image: str) -> None:
        self.change(template=template({"app": "web"}, image))

    def pods(self) -> list[Pod]:
        return pods_of(self.world)

    def names(self) -> list[str]:
        return [pod.name for pod in self.pods()]

    def images(self) -> list[str]:
        return [image_of(pod) for pod in self.pods()]

    def revisions(self) -> list[tuple[int, str]]:
        own_revisions = [
            r for r in self.world.of(ControllerRevision) if isinstance(r, ControllerRevision)
        ]
        return sorted((r.revision, r.name) for r in own_revisions)

    def claims(self) -> dict[str, str]:
        """Returns the kind of each claim's managing owner by the claim's name; "" where there is
        none.
        """
        owners = {c.name: controller_of(c) for c in self.world.of(PersistentVolumeClaim)}
        return {name: owner.kind if owner else "" for name, owner in owners.items()}
