"""The ReplicaSets of a Deployment during one sync, with the changes that are planned for each.

Changes are made to drafts. In the end each ReplicaSet whose draft differs becomes one write.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kcm.api.apps_v1 import Deployment, ReplicaSet
from kcm.controllers.deployment.bounds import max_surge, wanted_replicas
from kcm.controllers.deployment.revisions import DESIRED, MAXIMUM, read_number
from kcm.sdk import Create, Event, Patch


@dataclass(eq=False)
class Draft:
    """A ReplicaSet and the fields that it shall have. `born` says that it does not exist yet."""

    rs: ReplicaSet
    replicas: int
    annotations: dict[str, str]
    min_ready_seconds: int | None = None
    born: bool = False

    @classmethod
    def of(cls, rs: ReplicaSet, *, born: bool = False) -> Draft:
        """Returns a draft that changes nothing yet."""
        replicas = 1 if rs.spec.replicas is None else rs.spec.replicas
        return cls(rs, replicas, dict(rs.annotations), rs.spec.min_ready_seconds, born)

    @property
    def available(self) -> int:
        return self.rs.status.available_replicas or 0

    @property
    def writes(self) -> list[Create | Patch[ReplicaSet]]:
        """The create or patch that applies the draft, or nothing if the draft changes nothing."""
        new = self._apply(self.rs)
        if self.born:
            return [Create(new)]
        return [] if new is self.rs else [Patch(self.rs, self._apply)]

    def _apply(self, obj: ReplicaSet) -> ReplicaSet:
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
        """Sets the size of a ReplicaSet, and the annotations from which its share is computed
        later.

        Reports whether the size changed.
        """
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
    """Returns the annotations `desired-replicas` and `max-replicas` of a ReplicaSet.

    From them a ReplicaSet's share is computed when the Deployment is scaled.
    """
    replicas = wanted_replicas(deployment)
    return {DESIRED: str(replicas), MAXIMUM: str(replicas + max_surge(deployment))}


def pods_in(drafts: Iterable[Draft]) -> int:
    """Returns the sum of the replicas that the ReplicaSets shall have."""
    return sum(draft.replicas for draft in drafts)


def available_in(drafts: Iterable[Draft]) -> int:
    """Returns the number of available pods of the ReplicaSets."""
    return sum(draft.available for draft in drafts)


def is_scaled(rollout: Rollout) -> bool:
    """Reports whether the Deployment was scaled since its ReplicaSets were given their sizes."""
    replicas = wanted_replicas(rollout.deployment)
    recorded = (read_number(d.rs.annotations, DESIRED) for d in rollout.all if d.replicas > 0)
    return any(number is not None and number != replicas for number in recorded)
