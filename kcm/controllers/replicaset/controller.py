"""ReplicaSet: keeps as many pods that match a selector as the spec asks for.

Source: pkg/controller/replicaset/replica_set.go, Kubernetes 1.33. Upstream's expectations are not
needed here: a sync starts with caches that hold every earlier write (design 0011).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, ClassVar

from pydantic import Field

from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Pod, ReplicationController
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.ownership import controller_of
from kcm.controllers.replicaset.deletion_order import AGE_RATIO, age_ratios, first_to_delete
from kcm.controllers.replicaset.owner import ReplicaOwner, template_of
from kcm.controllers.replicaset.status import (
    ORPHANED_PODS,
    OWN_PODS,
    ReplicaSetObservation,
    count_pods,
    look_up_counts,
    status_after,
)
from kcm.helpers.owners import claim, own_and_orphans, selector_of
from kcm.helpers.pod_events import pod_write_events
from kcm.helpers.pods import (
    is_active,
    is_ready,
    is_terminating,
    next_availability,
    pod_from_template,
)
from kcm.sdk import (
    BY_CONTROLLER,
    Change,
    Controller,
    Create,
    Delete,
    Options,
    Outcome,
    Plan,
    View,
    Watch,
    controller_key,
    own_key,
    owner_keys,
)

BURST_REPLICAS = 500  # the most pods that one sync creates or deletes


class ReplicaSetOptions(Options):
    """The options of the ReplicaSet controller."""

    concurrent_replicaset_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of replica sets that are allowed to sync concurrently. Larger "
        "number = more responsive replica management, but more CPU (and network) load",
    )
    deployment_replicaset_terminating_replicas: bool = Field(
        default=False,
        description="Feature gate DeploymentReplicaSetTerminatingReplicas (alpha): report "
        "status.terminatingReplicas",
    )


class ReplicaSetController(Controller):
    """Claims pods, creates missing ones, deletes surplus ones, and updates the status.

    A key is a ReplicaSet.
    """

    name = "replicaset-controller"
    short_name = "replicaset"
    metrics = (AGE_RATIO,)
    tallies = ((Pod, OWN_PODS), (Pod, ORPHANED_PODS))
    group = "workloads"
    options_type: ClassVar[type[Options]] = ReplicaSetOptions
    options: Any  # of `options_type`, which the controller of another kind replaces
    model: ClassVar[type[ReplicaSet] | type[ReplicationController]] = ReplicaSet

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(self.model, self._unsettled_key), Watch(Pod, owner_keys(self.model)))

    def _unsettled_key(self, change: Change[Any], view: View) -> Iterable[str]:
        """Returns the key of a ReplicaSet unless only its status has changed, to what it has to be.

        Most changes of a status are the controller's own, and would cause a sync that does nothing.
        """
        old, new = change.old, change.new
        if old is None or new is None or old.spec != new.spec or old.metadata == new.metadata:
            return own_key(change, view)
        return () if self._is_settled(new, view) else own_key(change, view)

    def _is_settled(self, rs: ReplicaOwner, view: View) -> bool:
        """Reports whether a sync would change nothing."""
        selector = selector_of(rs)
        if selector is None or rs.deleting or self._reports_terminating():
            return False
        counts = look_up_counts(rs, selector, view)
        if counts is None or counts.replicas != _read_replicas(rs):
            return False
        return status_after(ReplicaSetObservation(rs, counts, None, view.now), Outcome()) is None

    def concurrent_syncs(self) -> int:
        return int(self.options.concurrent_replicaset_syncs)

    def reconcile(self, key: str, view: View) -> Plan:
        rs: ReplicaOwner | None = view.lister(self.model).find(key)
        if rs is None:
            return Plan()
        selector = selector_of(rs)
        if selector is None:
            return Plan()
        counts = None if self._reports_terminating() else look_up_counts(rs, selector, view)
        if counts is None or counts.replicas > _read_replicas(rs):
            return self._reconcile_pods(rs, selector, view)
        plan = Plan()
        if not rs.deleting:
            _create_missing(rs, counts.replicas, plan)
        plan.status_after = partial(status_after, ReplicaSetObservation(rs, counts, None, view.now))
        return plan

    def _reconcile_pods(self, rs: ReplicaOwner, selector: Selector, view: View) -> Plan:
        """Returns the plan of a sync for which counts are not enough, because it needs the pods."""
        pods = own_and_orphans(rs, Pod, view)
        # One loop over the pods: with many of them, each loop is slowed by memory access.
        claimed = claim(rs, selector, (pod for pod in pods if is_active(pod)))
        plan = Plan().then(*claimed.writes, essential=True)
        if not rs.deleting:
            _manage_replicas(rs, claimed.objects, view, plan)
        terminating = self._count_terminating(rs, selector, pods)
        counts = count_pods(rs, claimed.objects, view.now)
        seen = ReplicaSetObservation(rs, counts, terminating, view.now)
        plan.status_after = partial(status_after, seen)
        plan.requeue_after = _next_availability(rs, claimed.objects, view)
        return plan

    def _reports_terminating(self) -> bool:
        """Reports whether the status has the number of pods that are being deleted."""
        return bool(self.options.deployment_replicaset_terminating_replicas)

    def _count_terminating(
        self, rs: ReplicaOwner, selector: Selector, pods: Iterable[Pod]
    ) -> int | None:
        """Returns the number of own pods that are being deleted, None if it is not in the
        status.
        """
        if not self._reports_terminating():
            return None
        return sum(
            is_terminating(pod) and controller_of(pod) is not None and selector.matches(pod.labels)
            for pod in pods
        )


# --- creating and deleting pods


def _manage_replicas(rs: ReplicaOwner, pods: Sequence[Pod], view: View, plan: Plan) -> None:
    """Adds to the plan the creations or deletions that lead to the wanted number of pods."""
    surplus = len(pods) - _read_replicas(rs)
    if surplus <= 0:
        _create_missing(rs, len(pods), plan)
    else:
        related = _list_related_pods(rs, view)
        count = min(surplus, BURST_REPLICAS)
        to_delete = first_to_delete(pods, count, related, view.now)
        plan.then(*(Delete(pod) for pod in to_delete))
        plan.status_can_wait = surplus <= BURST_REPLICAS
        plan.counts = age_ratios(pods, to_delete, view.now)
        plan.events_after = partial(pod_write_events, rs)


def _create_missing(rs: ReplicaOwner, present: int, plan: Plan) -> None:
    """Adds to the plan the creations of the pods that are missing when `present` ones exist."""
    missing = _read_replicas(rs) - present
    # A set that takes several syncs reports how far it is.
    plan.status_can_wait = missing <= BURST_REPLICAS
    if missing > 0:
        # The same object is created several times: the store copies it and generates the names.
        create = Create(pod_from_template(template_of(rs), rs))
        plan.then(*[create] * min(missing, BURST_REPLICAS), slow_start=True)
        plan.events_after = partial(pod_write_events, rs)


def _read_replicas(rs: ReplicaOwner) -> int:
    return 1 if rs.spec.replicas is None else rs.spec.replicas


def _list_related_pods(rs: ReplicaOwner, view: View) -> list[Pod]:
    """Returns the pods of all ReplicaSets with the same owner (one Deployment), including `rs`.

    Returns nothing if `rs` has no owner.
    """
    owner = controller_of(rs)
    if owner is None:
        return []
    pods_by_uid: dict[str, Pod] = {}
    key = controller_key(rs.namespace, owner.uid)
    for related in view.lister(type(rs)).by_index(BY_CONTROLLER, key):
        selector = selector_of(related)
        if selector is not None:
            pods = view.lister(Pod).list(related.namespace, selector)
            pods_by_uid.update((pod.uid, pod) for pod in pods)
    return list(pods_by_uid.values())


def _next_availability(rs: ReplicaOwner, pods: Iterable[Pod], view: View) -> float | None:
    """Returns the seconds until the next ready pod has been ready for minReadySeconds, or None.

    Upstream syncs minReadySeconds after a pod became ready, and once more against clock skew. Here
    the exact time is computed.
    """
    seconds = rs.spec.min_ready_seconds
    if not seconds:
        return None
    return next_availability((pod for pod in pods if is_ready(pod)), seconds, view.now)
