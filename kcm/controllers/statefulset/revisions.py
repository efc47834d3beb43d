"""Which revisions a StatefulSet goes from and to, and which of them a pod is to be of.

Source: getStatefulSetRevisions in pkg/controller/statefulset/stateful_set_control.go and
newVersionedStatefulSetPod in stateful_set_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kcm.api.apps_v1 import ControllerRevision, StatefulSet
from kcm.api.core_v1 import Pod
from kcm.controllers.statefulset.identity import new_pod, revision_of, start_of
from kcm.helpers.history import (
    Recorded,
    exceeding_revisions,
    record_revision,
    sort_revisions,
    template_of,
)


@dataclass(frozen=True)
class Revisions:
    """The history, and the two ends of an update."""

    every: Sequence[ControllerRevision]  # in order, without one that is only now to be made
    current: ControllerRevision
    update: Recorded

    @classmethod
    def of(
        cls,
        found: StatefulSet,
        revisions: Sequence[ControllerRevision],
        is_taken: Callable[[str], bool],
    ) -> Revisions:
        every = sort_revisions(revisions)
        collisions = found.status.collision_count or 0
        update = record_revision(found, found.spec.template, every, collisions, is_taken)
        name = found.status.current_revision
        current = next((r for r in every if r.name == name), update.revision)
        return cls(every, current, update)

    def for_ordinal(self, found: StatefulSet, ordinal: int) -> ControllerRevision:
        """The revision that a pod made now has."""
        strategy, index = found.spec.update_strategy, ordinal - start_of(found)
        if strategy.type == "RollingUpdate":
            update = strategy.rolling_update
            current = (
                index < (found.status.current_replicas or 0)
                if update is None
                else index < (update.partition or 0)
            )
            if current:
                return self.current
        return self.update.revision

    def pod(self, found: StatefulSet, ordinal: int) -> Pod:
        """The pod of a number, as it is made now."""
        revision = self.for_ordinal(found, ordinal)
        template = (
            found.spec.template
            if revision.name == self.update.revision.name
            else template_of(revision)
        )
        return new_pod(found, template, ordinal, revision.name)

    def doomed(self, found: StatefulSet, pods: Sequence[Pod]) -> list[ControllerRevision]:
        """Those beyond the history's limit."""
        limit = found.spec.revision_history_limit
        if limit is None or limit < 0:
            return []
        live = {self.current.name, self.update.revision.name, *map(revision_of, pods)}
        return exceeding_revisions(self.every, lambda revision: revision.name in live, limit)
