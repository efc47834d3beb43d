"""One sync's view of a rollout: the ReplicaSets, and what shall become of each.

Changes are made on drafts, and turned into writes at the end, one for each
ReplicaSet that changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kcm.api.apps_v1 import Deployment, ReplicaSet
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.deployment.bounds import max_surge, wanted
from kcm.controllers.deployment.revisions import DESIRED, MAXIMUM, number
from kcm.reconcile.plan import Create, Event, Patch


@dataclass(eq=False)
class Draft:
    """A ReplicaSet and what it shall be; `born` for one that does not exist yet."""

    rs: ReplicaSet
    replicas: int
    annotations: dict[str, str]
    min_ready_seconds: int | None = None
    born: bool = False

    @classmethod
    def of(cls, rs: ReplicaSet, *, born: bool = False) -> Draft:
        """A draft that changes nothing yet."""
        replicas = 1 if rs.spec.replicas is None else rs.spec.replicas
        return cls(rs, replicas, dict(rs.annotations), rs.spec.min_ready_seconds, born)

    @property
    def available(self) -> int:
        return self.rs.status.available_replicas or 0

    @property
    def writes(self) -> list[Create | Patch]:
        """The write that makes it so, if there is one."""
        new = self._applied(self.rs)
        if self.born:
            assert isinstance(new, ReplicaSet)
            return [Create(new)]
        return [] if new is self.rs else [Patch(self.rs, self._applied)]

    def _applied(self, obj: KubeObject) -> KubeObject:
        assert isinstance(obj, ReplicaSet)
        spec = obj.spec.replace(replicas=self.replicas, min_ready_seconds=self.min_ready_seconds)
        same = spec == obj.spec and self.annotations == obj.annotations
        return obj if same else obj.with_spec(spec).with_metadata(annotations=self.annotations)


@dataclass
class Rollout:
    """The ReplicaSets of a Deployment: the new one, and those of earlier templates."""

    deployment: Deployment
    old: list[Draft]
    new: Draft | None = None
    events: list[Event] = field(default_factory=list)

    @property
    def all(self) -> list[Draft]:
        return [*self.old, *([self.new] if self.new else [])]

    @property
    def active_old(self) -> list[Draft]:
        return [draft for draft in self.old if draft.replicas > 0]

    def scale(self, draft: Draft, size: int) -> bool:
        """Give a ReplicaSet this size, and note the sizes it is a part of; whether it changed."""
        deployment, before = self.deployment, draft.replicas
        draft.annotations |= sizes_of(deployment)
        draft.replicas = size
        if before == size:
            return False
        verb = "up" if size > before else "down"
        message = f"Scaled {verb} replica set {draft.rs.name} from {before} to {size}"
        self.events.append(Event(deployment, "Normal", "ScalingReplicaSet", message))
        return True


def sizes_of(deployment: Deployment) -> dict[str, str]:
    """The annotations from which a ReplicaSet's share is worked out when it is scaled."""
    replicas = wanted(deployment)
    return {DESIRED: str(replicas), MAXIMUM: str(replicas + max_surge(deployment))}


def pods_in(drafts: Iterable[Draft]) -> int:
    """How many pods ReplicaSets ask for."""
    return sum(draft.replicas for draft in drafts)


def available_in(drafts: Iterable[Draft]) -> int:
    """How many of their pods are available."""
    return sum(draft.available for draft in drafts)


def is_scaled(rollout: Rollout) -> bool:
    """Whether the number of pods was changed since a ReplicaSet was last given its size."""
    replicas = wanted(rollout.deployment)
    known = (number(d.rs.annotations, DESIRED) for d in rollout.all if d.replicas > 0)
    return any(found is not None and found != replicas for found in known)
