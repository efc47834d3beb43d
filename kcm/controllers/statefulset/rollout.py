"""Plans one step of a StatefulSet: the pods to create, change and delete.

Source: updateStatefulSet in pkg/controller/statefulset/stateful_set_control.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import islice

from kcm.api.apps_v1 import StatefulSet, StatefulSetCondition
from kcm.api.core_v1 import PersistentVolumeClaim, Pod
from kcm.controllers.statefulset.claims import claims_of, is_stale, plan_retention
from kcm.controllers.statefulset.identity import (
    has_identity,
    in_range,
    is_available,
    is_running_and_ready,
    is_unavailable,
    ordinal_of,
    revision_of,
    start_of,
    wanted_replicas,
    with_identity,
)
from kcm.controllers.statefulset.revisions import Revisions
from kcm.controllers.statefulset.status import is_stuck, stall_condition
from kcm.sdk import Create, Delete, Exists, Lister, Patch

CLAIMS = PersistentVolumeClaim.resource
# Departure: upstream keeps a slot for each replica, so that a set of two billion takes 16 GB. The
# pods that a sync creates cause the next one, and updates wait until all are there.
MOST_CREATED = 500  # pods by one sync, as the burst of a ReplicaSet
STALE_CLAIM_RETRY = 1.0  # seconds until the next sync while a stale claim is not yet deleted


class OrderedRollout:
    """Decides on the writes of one sync: one pod after the other, unless pods are managed in
    parallel.
    """

    def __init__(
        self,
        stateful_set: StatefulSet,
        pods: Sequence[Pod],
        revisions: Revisions,
        claims: Lister[PersistentVolumeClaim],
        now: datetime,
    ) -> None:
        self._set, self._revisions, self._claims, self._now = stateful_set, revisions, claims, now
        self._in_order = stateful_set.spec.pod_management_policy != "Parallel"
        by_ordinal = {ordinal_of(pod): pod for pod in pods}
        start = start_of(stateful_set)
        wanted = range(start, start + wanted_replicas(stateful_set))
        absent = islice((n for n in wanted if n not in by_ordinal), MOST_CREATED)
        ordinals = sorted([*absent, *(n for n in by_ordinal if n in wanted)])
        self._replicas: dict[int, Pod | None] = {n: by_ordinal.get(n) for n in ordinals}
        self._has_more = len(ordinals) < len(wanted)  # pods that a later sync creates
        condemned = [n for n in by_ordinal if n >= 0 and not in_range(stateful_set, n)]
        self._condemned = [by_ordinal[n] for n in sorted(condemned, reverse=True)]
        self.new_claims: list[Create] = []
        self.creates: list[Create] = []
        self.patches: list[Patch[Pod] | Patch[PersistentVolumeClaim]] = []
        self.deletes: list[Delete] = []
        self.replaced: list[Pod] = []  # pods deleted for the update
        self.stalled: StatefulSetCondition | None = None
        self.retry_after: float | None = None  # seconds

    def run(self, max_unavailable: Callable[[int], int] | None) -> None:
        """Plans the writes. The attributes without underscore hold them.

        `max_unavailable` takes the number of replicas and returns how many may be unavailable
        during an update. With None an update replaces one pod at a time, while all others are
        available.
        """
        for ordinal, pod in self._replicas.items():
            if self._tend(ordinal, pod) and self._in_order:
                return
        for pod in self._condemned:
            self._keep_claims(pod)
        first = self._first_unavailable()
        for pod in self._condemned:
            if self._condemn(pod, first) and self._in_order:
                return
        if self._has_more or self._set.spec.update_strategy.type != "RollingUpdate":
            return
        if max_unavailable is None:
            self._update_one()
        else:
            self._update_several(max_unavailable(wanted_replicas(self._set)))

    # --- pods within the range of ordinals

    def _tend(self, ordinal: int, pod: Pod | None) -> bool:
        """Plans the writes for the pod of an ordinal, and returns whether the next pods have to
        wait.

        Call it with None for a missing pod. In parallel management the result is ignored, and a pod
        is patched even if it is not ready.
        """
        if pod is None:
            self._create(ordinal)
            return True
        if pod.status.phase in ("Failed", "Succeeded"):
            if not pod.deleting:
                self.deletes.append(Delete(pod))
            return True
        if pod.status.phase == "Pending":
            self._claim(pod.name)
        if is_unavailable(self._set, pod, self._now) and self._in_order:
            self._look_for_stall(ordinal, pod)
            return True
        if not has_identity(pod):
            self.patches.append(Patch(pod, with_identity))
        self._keep_claims(pod)
        return False

    def _create(self, ordinal: int) -> None:
        pod = self._revisions.pod(self._set, ordinal)
        needed = [claim.key for claim in claims_of(self._set, pod.name)]
        present = [claim for key in needed if (claim := self._claims.find(key)) is not None]
        if any(is_stale(claim, pod.name) or claim.deleting for claim in present):
            self.retry_after = STALE_CLAIM_RETRY
            return
        self._claim(pod.name)
        self._keep_claims(pod)
        guards = tuple(Exists(CLAIMS.name, key) for key in needed)
        self.creates.append(Create(pod, guards))

    def _claim(self, pod: str) -> None:
        """Plans the creation of the claims that the pod lacks."""
        for claim in claims_of(self._set, pod):
            if self._claims.find(claim.key) is None:
                self.new_claims.append(Create(claim))

    def _keep_claims(self, pod: Pod) -> None:
        """Plans the patches that set the owners of the pod's claims by the retention policy."""
        for needed in claims_of(self._set, pod.name):
            claim = self._claims.find(needed.key)
            patch = plan_retention(self._set, pod, claim) if claim is not None else None
            if patch is not None:
                self.patches.append(patch)

    def _look_for_stall(self, ordinal: int, pod: Pod) -> None:
        """Sets `stalled` if the update waits for a pod of an old revision that does not become
        ready.
        """
        if pod.deleting or is_running_and_ready(pod) or self.stalled is not None:
            return
        update = self._revisions.for_ordinal(self._set, ordinal).name
        if revision_of(pod) != update and is_stuck(pod):
            self.stalled = stall_condition(pod, update, self._now)

    # --- surplus pods

    def _first_unavailable(self) -> Pod | None:
        candidates = [*self._replicas.values(), *reversed(self._condemned)]
        return next(
            (p for p in candidates if p is not None and is_unavailable(self._set, p, self._now)),
            None,
        )

    def _condemn(self, pod: Pod, first_unavailable: Pod | None) -> bool:
        """Deletes a surplus pod if it may be deleted now. Returns True, as smaller ordinals have to
        wait.
        """
        if pod.deleting:
            return True
        ready = is_available(self._set, pod, self._now)
        if self._in_order and not ready and pod is not first_unavailable:
            return True
        self.deletes.append(Delete(pod))
        return True

    # --- pods of another revision

    def _pods_to_update(self) -> list[Pod | None]:
        """Returns the pods from the partition on, the largest ordinal first; None for missing
        ones.
        """
        update = self._set.spec.update_strategy.rolling_update
        partition = (update.partition if update else None) or 0
        return list(reversed(list(self._replicas.values())[partition:]))

    def _is_old(self, pod: Pod | None) -> bool:
        update = self._revisions.update.revision.name
        return pod is not None and revision_of(pod) != update and not pod.deleting

    def _replace(self, pod: Pod | None) -> None:
        assert pod is not None
        if not any(delete.old is pod for delete in self.deletes):
            self.deletes.append(Delete(pod))
        self.replaced.append(pod)

    def _update_one(self) -> None:
        for pod in self._pods_to_update():
            if self._is_old(pod):
                return self._replace(pod)
            if is_unavailable(self._set, pod, self._now):
                return None
        return None

    def _update_several(self, allowed: int) -> None:
        replicas = self._replicas.values()
        unavailable = sum(is_unavailable(self._set, pod, self._now) for pod in replicas)
        for pod in self._pods_to_update():
            if len(self.replaced) >= allowed - unavailable:
                return
            if self._is_old(pod):
                self._replace(pod)
