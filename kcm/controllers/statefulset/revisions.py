"""The revisions that a StatefulSet is updated from and to, and the revision of each pod.

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
    record_revision,
    revisions_beyond_limit,
    sort_revisions,
    template_of,
)


@dataclass(frozen=True)
class Revisions:
    """The revisions of a StatefulSet, with the current one and the update revision."""

    every: Sequence[ControllerRevision]  # sorted, without one that this sync creates
    current: ControllerRevision
    update: Recorded

    @classmethod
    def of(
        cls,
        stateful_set: StatefulSet,
        revisions: Sequence[ControllerRevision],
        is_taken: Callable[[str], bool],
    ) -> Revisions:
        every = sort_revisions(revisions)
        collisions = stateful_set.status.collision_count or 0
        update = record_revision(
            stateful_set, stateful_set.spec.template, every, collisions, is_taken
        )
        name = stateful_set.status.current_revision
        current = next((r for r in every if r.name == name), update.revision)
        return cls(every, current, update)

    def for_ordinal(self, stateful_set: StatefulSet, ordinal: int) -> ControllerRevision:
        """Returns the revision from which a pod of this ordinal is created now."""
        strategy, index = stateful_set.spec.update_strategy, ordinal - start_of(stateful_set)
        if strategy.type == "RollingUpdate":
            update = strategy.rolling_update
            current = (
                index < (stateful_set.status.current_replicas or 0)
                if update is None
                else index < (update.partition or 0)
            )
            if current:
                return self.current
        return self.update.revision

    def pod(self, stateful_set: StatefulSet, ordinal: int) -> Pod:
        """Returns a new pod for an ordinal, of the revision that `for_ordinal` returns."""
        revision = self.for_ordinal(stateful_set, ordinal)
        template = (
            stateful_set.spec.template
            if revision.name == self.update.revision.name
            else template_of(revision)
        )
        return new_pod(stateful_set, template, ordinal, revision.name)

    def find_surplus(
        self, stateful_set: StatefulSet, pods: Sequence[Pod]
    ) -> list[ControllerRevision]:
        """Returns the revisions to delete: the oldest unused ones beyond revisionHistoryLimit."""
        limit = stateful_set.spec.revision_history_limit
        if limit is None or limit < 0:
            return []
        live = {self.current.name, self.update.revision.name, *map(revision_of, pods)}
        return revisions_beyond_limit(self.every, lambda revision: revision.name in live, limit)
