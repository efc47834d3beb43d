"""DaemonSet: runs a pod on every node that it selects.

Source: pkg/controller/daemon/{daemon_controller,update}.go, Kubernetes 1.33. As in 1.34, a node
that is added or deleted enqueues only the DaemonSets that it affects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from pydantic import Field

from kcm.api.apps_v1 import ControllerRevision, DaemonSet, DaemonSetStatus
from kcm.api.core_v1 import Node, Pod
from kcm.apimachinery.ownership import controller_of
from kcm.controllers.daemonset.backoff import FailedPodsBackoff
from kcm.controllers.daemonset.daemons import Daemons
from kcm.controllers.daemonset.placement import NEITHER, Placement, new_pod
from kcm.controllers.daemonset.rolling import roll
from kcm.helpers.history import (
    REVISION_HASH,
    Recorded,
    record_revision,
    revisions_beyond_limit,
    sort_revisions,
)
from kcm.helpers.owners import claim, own_and_orphans, selector_of
from kcm.helpers.pod_events import pod_write_events
from kcm.sdk import (
    BY_NODE,
    Change,
    Controller,
    Create,
    Delete,
    Options,
    Outcome,
    Plan,
    UpdateStatus,
    View,
    Watch,
    own_key,
    owner_keys,
)

BURST_REPLICAS = 250  # the most pods that one sync creates, and the most that it deletes


class DaemonSetOptions(Options):
    """The options of the DaemonSet controller."""

    concurrent_daemonset_syncs: int = Field(
        default=2,
        ge=1,
        description="The number of daemonset objects that are allowed to sync concurrently. "
        "Larger number = more responsive daemonsets, but more CPU (and network) load",
    )


class DaemonSetController(Controller):
    """Creates, deletes and updates the pods of DaemonSets. A key is a DaemonSet."""

    name = "daemonset-controller"
    short_name = "daemonset"
    group = "workloads"
    options_type = DaemonSetOptions
    options: DaemonSetOptions
    reads = (ControllerRevision,)
    remembers = True  # the back-off of nodes with failed pods

    def watches(self) -> tuple[Watch[Any], ...]:
        return (
            Watch(DaemonSet, own_key),
            Watch(Pod, owner_keys(DaemonSet)),
            Watch(Node, find_affected_daemon_sets),
        )

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_daemonset_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        daemon_set = view.lister(DaemonSet).find(key)
        selector = selector_of(daemon_set) if daemon_set is not None else None
        if daemon_set is None or selector is None or daemon_set.deleting:
            return Plan()
        if selector.empty:
            message = "This daemon set is selecting all pods. A non-empty selector is required."
            return Plan().record(daemon_set, "SelectingAll", message, warning=True)
        pods = claim(daemon_set, selector, own_and_orphans(daemon_set, Pod, view))
        history = claim(daemon_set, selector, own_and_orphans(daemon_set, ControllerRevision, view))
        plan = Plan().then(*pods.writes, *history.writes, essential=True)
        revisions = sort_revisions(history.objects)
        recorded = _record_revision(daemon_set, revisions, view)
        plan.then(*recorded.writes, essential=True)
        daemons = _sort_pods(daemon_set, pods.objects, recorded, view)
        to_delete = _find_surplus_revisions(daemon_set, revisions, recorded, pods.objects)
        return _build_plan(plan, daemons, recorded, to_delete)


def find_affected_daemon_sets(change: Change, view: View) -> Iterable[str]:
    """Yields the DaemonSets whose pods should start or stay on a node in another way than before.

    A node that was added or deleted does not affect DaemonSets that do not select it and have no
    pod there.
    """
    old, new = change.old, change.new
    both = isinstance(old, Node) and isinstance(new, Node)
    present = frozenset() if both else _present_on(change.object.name, view)
    for daemon_set in view.lister(DaemonSet).list():
        placement = Placement.of(daemon_set)
        judged = [placement.judge(node) for node in (old, new) if isinstance(node, Node)]
        if judged[0] != judged[-1] if both else judged != [NEITHER] or daemon_set.uid in present:
            yield daemon_set.key


def _present_on(node: str, view: View) -> frozenset[str]:
    """Returns the uids of the DaemonSets that have pods on a node."""
    pods = view.lister(Pod).by_index(BY_NODE, node)
    return frozenset(owner.uid for pod in pods if (owner := controller_of(pod)) is not None)


def _record_revision(
    daemon_set: DaemonSet, revisions: Sequence[ControllerRevision], view: View
) -> Recorded:
    lister = view.lister(ControllerRevision)
    return record_revision(
        daemon_set,
        daemon_set.spec.template,
        revisions,
        daemon_set.status.collision_count or 0,
        lambda key: lister.find(key) is not None,
        label=REVISION_HASH,
    )


def _hash_of(revision: ControllerRevision) -> str:
    return revision.labels.get(REVISION_HASH) or revision.name


def _sort_pods(
    daemon_set: DaemonSet, pods: Sequence[Pod], recorded: Recorded, view: View
) -> Daemons:
    backoff = FailedPodsBackoff(view.memory, view.now)
    nodes = view.lister(Node).list()
    daemons = Daemons(daemon_set, nodes, _hash_of(recorded.revision), backoff, view.now)
    daemons.observe(pods)
    daemons.manage()
    rolling = daemon_set.spec.update_strategy.type == "RollingUpdate"
    # As upstream's expectations require, missing and surplus pods come first, then updates.
    if rolling and not daemons.missing and not daemons.to_delete:
        roll(daemons)
    return daemons


def _find_surplus_revisions(
    daemon_set: DaemonSet,
    revisions: Sequence[ControllerRevision],
    recorded: Recorded,
    pods: Sequence[Pod],
) -> list[ControllerRevision]:
    """Returns the revisions to delete: the oldest unused ones beyond revisionHistoryLimit."""
    limit = daemon_set.spec.revision_history_limit
    if limit is None:
        return []
    live = {_hash_of(recorded.revision), *(pod.labels.get(REVISION_HASH, "") for pod in pods)}
    return revisions_beyond_limit(revisions, lambda revision: _hash_of(revision) in live, limit)


def _build_plan(
    plan: Plan, daemons: Daemons, recorded: Recorded, to_delete: Sequence[ControllerRevision]
) -> Plan:
    daemon_set = daemons.daemon_set
    nodes = daemons.missing[:BURST_REPLICAS]
    creates = [Create(new_pod(daemon_set, node, daemons.revision)) for node in nodes]
    plan.then(*creates, slow_start=True)
    plan.then(*(Delete(pod) for pod in daemons.to_delete[:BURST_REPLICAS]))
    plan.then(*map(Delete, to_delete))
    plan.events += daemons.events
    plan.events_after = partial(pod_write_events, daemon_set)
    plan.status_after = partial(_update_status, daemon_set, daemons.status(recorded.collisions))
    waits = (daemons.retry_after, daemons.next_availability())
    plan.requeue_after = min((wait for wait in waits if wait is not None), default=None)
    plan.state = daemons.backoff.to_memory()
    return plan


def _update_status(
    daemon_set: DaemonSet, status: DaemonSetStatus, _: Outcome
) -> UpdateStatus | None:
    if status == daemon_set.status:
        return None
    return UpdateStatus(daemon_set.with_status(status), daemon_set)
