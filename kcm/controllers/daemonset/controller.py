"""DaemonSet: keeps a pod on every node that it is meant for.

Source: pkg/controller/daemon/{daemon_controller,update}.go, Kubernetes 1.33, and from 1.34 that a
node which comes or goes wakes only the DaemonSets that it concerns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from pydantic import Field

from kcm.api.apps_v1 import ControllerRevision, DaemonSet, DaemonSetStatus
from kcm.api.core_v1 import Node, Pod
from kcm.api.ownership import controller_of
from kcm.controllers.daemonset.backoff import Backoff
from kcm.controllers.daemonset.daemons import Daemons
from kcm.controllers.daemonset.placement import NEITHER, Placement, new_pod
from kcm.controllers.daemonset.rolling import roll
from kcm.helpers.history import (
    REVISION_HASH,
    Recorded,
    exceeding_revisions,
    record_revision,
    sort_revisions,
)
from kcm.helpers.owners import owner_keys, selector_of
from kcm.helpers.refs import claim, own_and_orphans
from kcm.reconcile.contract import (
    BY_NODE,
    Change,
    Controller,
    Options,
    View,
    Watch,
    own_key,
)
from kcm.reconcile.plan import Create, Delete, Event, Outcome, Plan, UpdateStatus

BURST_REPLICAS = 250  # pods created or deleted in one sync; the next one goes on


class DaemonSetOptions(Options):
    """Tunables of the DaemonSet controller."""

    concurrent_daemonset_syncs: int = Field(
        default=2,
        ge=1,
        description="The number of daemonset objects that are allowed to sync concurrently. "
        "Larger number = more responsive daemonsets, but more CPU (and network) load",
    )


class DaemonSetController(Controller):
    """One key per DaemonSet."""

    name = "daemonset-controller"
    short_name = "daemonset"
    group = "workloads"
    options_type = DaemonSetOptions
    options: DaemonSetOptions
    reads = (ControllerRevision,)
    remembers = True  # how long the nodes of failed pods wait

    def watches(self) -> tuple[Watch, ...]:
        return (
            Watch(DaemonSet, own_key),
            Watch(Pod, owner_keys(DaemonSet)),
            Watch(Node, judged_anew),
        )

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_daemonset_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        found = view.lister(DaemonSet).find(key)
        selector = selector_of(found) if found is not None else None
        if found is None or selector is None or found.deleting:
            return Plan()
        if selector.empty:
            message = "This daemon set is selecting all pods. A non-empty selector is required."
            return Plan().record(found, "SelectingAll", message, warning=True)
        pods = claim(found, selector, own_and_orphans(found, Pod, view))
        history = claim(found, selector, own_and_orphans(found, ControllerRevision, view))
        plan = Plan().then(*pods.writes, *history.writes, essential=True)
        revisions = sort_revisions(history.objects)
        recorded = _recorded(found, revisions, view)
        plan.then(*recorded.writes, essential=True)
        daemons = _seen(found, pods.objects, recorded, view)
        doomed = _beyond(found, revisions, recorded, pods.objects)
        return _planned(plan, daemons, recorded, doomed)


def judged_anew(change: Change, view: View) -> Iterable[str]:
    """The DaemonSets for which a node is now another matter than before.

    One that came or went is no matter of those that it is not for and that have no pod there.
    """
    old, new = change.old, change.new
    both = isinstance(old, Node) and isinstance(new, Node)
    present = frozenset() if both else _present_on(change.object.name, view)
    for found in view.lister(DaemonSet).list():
        placement = Placement.of(found)
        judged = [placement.judge(node) for node in (old, new) if isinstance(node, Node)]
        if judged[0] != judged[-1] if both else judged != [NEITHER] or found.uid in present:
            yield found.key


def _present_on(node: str, view: View) -> frozenset[str]:
    """The uids of what has pods on a node."""
    pods = view.lister(Pod).by_index(BY_NODE, node)
    return frozenset(owner.uid for pod in pods if (owner := controller_of(pod)) is not None)


def _recorded(found: DaemonSet, revisions: Sequence[ControllerRevision], view: View) -> Recorded:
    known = view.lister(ControllerRevision)
    return record_revision(
        found,
        found.spec.template,
        revisions,
        found.status.collision_count or 0,
        lambda key: known.find(key) is not None,
        label=REVISION_HASH,
    )


def _hash_of(revision: ControllerRevision) -> str:
    return revision.labels.get(REVISION_HASH) or revision.name


def _seen(found: DaemonSet, pods: Sequence[Pod], recorded: Recorded, view: View) -> Daemons:
    backoff = Backoff(view.memory, view.now)
    nodes = view.lister(Node).list()
    daemons = Daemons(found, nodes, _hash_of(recorded.revision), backoff, view.now)
    daemons.see(pods)
    daemons.manage()
    rolling = found.spec.update_strategy.type == "RollingUpdate"
    # Upstream's expectations say the same: first what is missing or too much, then updates.
    if rolling and not daemons.missing and not daemons.doomed:
        roll(daemons)
    return daemons


def _beyond(
    found: DaemonSet,
    revisions: Sequence[ControllerRevision],
    recorded: Recorded,
    pods: Sequence[Pod],
) -> list[ControllerRevision]:
    """The revisions beyond the history's limit."""
    limit = found.spec.revision_history_limit
    if limit is None:
        return []
    live = {_hash_of(recorded.revision), *(pod.labels.get(REVISION_HASH, "") for pod in pods)}
    return exceeding_revisions(revisions, lambda revision: _hash_of(revision) in live, limit)


def _planned(
    plan: Plan, daemons: Daemons, recorded: Recorded, doomed: Sequence[ControllerRevision]
) -> Plan:
    found = daemons.found
    nodes = daemons.missing[:BURST_REPLICAS]
    creates = [Create(new_pod(found, node, daemons.revision)) for node in nodes]
    plan.then(*creates, slow_start=True)
    plan.then(*(Delete(pod) for pod in daemons.doomed[:BURST_REPLICAS]))
    plan.then(*map(Delete, doomed))
    plan.events += daemons.events
    plan.events_after = partial(_events, found)
    plan.status_after = partial(_written, found, daemons.status(recorded.collisions))
    waits = (daemons.retry_after, daemons.next_availability())
    plan.requeue_after = min((wait for wait in waits if wait is not None), default=None)
    plan.state = daemons.backoff.memory()
    return plan


def _written(found: DaemonSet, status: DaemonSetStatus, _: Outcome) -> UpdateStatus | None:
    return None if status == found.status else UpdateStatus(found.with_status(status), found)


def _events(found: DaemonSet, outcome: Outcome) -> list[Event]:
    told: list[Event] = []
    for write, obj in outcome.done:
        if not isinstance(obj, Pod):
            continue
        if isinstance(write, Create):
            told.append(Event(found, "Normal", "SuccessfulCreate", f"Created pod: {obj.name}"))
        elif isinstance(write, Delete) and obj is not write.old:  # else it was gone already
            told.append(Event(found, "Normal", "SuccessfulDelete", f"Deleted pod: {obj.name}"))
    for failure in outcome.failures:
        if isinstance(failure.write, Create) and isinstance(failure.write.obj, Pod):
            message = f"Error creating: {failure.error}"
            told.append(Event(found, "Warning", "FailedCreate", message))
        elif isinstance(failure.write, Delete) and isinstance(failure.write.old, Pod):
            message = f"Error deleting: {failure.error}"
            told.append(Event(found, "Warning", "FailedDelete", message))
    return told
