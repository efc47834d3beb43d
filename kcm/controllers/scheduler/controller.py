"""Scheduler: binds pods to nodes.

A key is a scheduler's name, so that only one of its passes runs at a time; a pass binds many pods.
Several schedulers, and people who bind by hand, may work at once: a binding fails if the pods of
the node are no longer those that the pass saw.

Source: pkg/scheduler/scheduler.go and pkg/scheduler/eventhandlers.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
from typing import Any

from kcm.api.apps_v1 import ReplicaSet, StatefulSet
from kcm.api.core_v1 import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ReplicationController,
    Service,
)
from kcm.api.policy_v1 import PodDisruptionBudget
from kcm.api.storage_v1 import VolumeAttachment
from kcm.controllers.scheduler.cluster_events import node_events
from kcm.controllers.scheduler.metrics import METRICS
from kcm.controllers.scheduler.options import SchedulerOptions
from kcm.controllers.scheduler.passes import Scheduler
from kcm.controllers.scheduler.volumes.view import STORAGE_KINDS
from kcm.helpers.pods import is_terminal
from kcm.helpers.volumes.binding import ClaimState
from kcm.sdk import BY_CLAIM, Change, Controller, Plan, View, Watch


class SchedulerController(Controller):
    """Binds the pods whose scheduler is one of those in `--scheduler-names`."""

    name = "default-scheduler"
    short_name = "scheduler"
    options_type = SchedulerOptions
    options: SchedulerOptions
    reads = (
        PodDisruptionBudget,
        ReplicaSet,
        ReplicationController,
        Service,
        StatefulSet,
        *STORAGE_KINDS,
    )
    remembers = True
    local_only = True
    metrics = METRICS

    def __init__(
        self, options: SchedulerOptions | None = None, rng: random.Random | None = None
    ) -> None:
        """`rng` breaks ties between nodes."""
        super().__init__(options)
        self._schedulers = _Schedulers(self.options, rng or random.Random())

    def draw_from(self, rng: random.Random) -> None:
        self._schedulers = _Schedulers(self.options, rng)

    def watches(self) -> tuple[Watch[Any], ...]:
        return (
            Watch(Pod, self._pod_keys),
            Watch(Node, self._node_keys),
            Watch(Namespace, self._namespace_keys),
            Watch(PersistentVolumeClaim, self._claim_keys),
            Watch(PersistentVolume, self._volume_keys),
            *(Watch(kind, self._storage_keys) for kind in STORAGE_KINDS[2:]),
            Watch(VolumeAttachment, self._attachment_keys),
        )

    def concurrent_syncs(self) -> int:
        return max(len(self.options.names), 1)

    def reconcile(self, key: str, view: View) -> Plan:
        if key not in self.options.names:
            return Plan()
        return self._schedulers.of(key).run(view)

    # --- changes that need a pass

    def _pod_keys(self, change: Change[Pod], view: View) -> Iterable[str]:
        old, new = change.old, change.new
        if new is not None and _waits(new):
            scheduler = new.spec.scheduler_name or ""
            if scheduler in self.options.names and (old is None or _asks_anew(old, new)):
                return (scheduler,)
            return ()
        return self.options.names if _makes_room(old, new) else ()

    def _node_keys(self, change: Change, view: View) -> Iterable[str]:
        old, new = change.old, change.new
        if isinstance(new, Node) and isinstance(old, Node) and not node_events(old, new):
            return ()
        return self.options.names

    def _namespace_keys(self, change: Change, view: View) -> Iterable[str]:
        old, new = change.old, change.new
        if old is None or new is None or old.metadata.labels == new.metadata.labels:
            return ()
        return self.options.names

    def _claim_keys(self, change: Change, view: View) -> Iterable[str]:
        """Returns the schedulers if a pod without a node uses the claim, and may be helped."""
        old, new = change.old, change.new
        if not isinstance(new, PersistentVolumeClaim):
            return ()
        before = ClaimState.of(old) if isinstance(old, PersistentVolumeClaim) else None
        if not ClaimState.of(new).may_help(before):
            return ()
        pods = view.lister(Pod).by_index(BY_CLAIM, new.key)
        return self.options.names if any(_waits(pod) for pod in pods) else ()

    def _volume_keys(self, change: Change, view: View) -> Iterable[str]:
        """Returns the schedulers if the volume is free, or other nodes reach it now."""
        old, new = change.old, change.new
        if not isinstance(new, PersistentVolume):
            return ()
        moved = isinstance(old, PersistentVolume) and (
            old.spec.node_affinity != new.spec.node_affinity
            or old.metadata.labels != new.metadata.labels
        )
        free = new.spec.claim_ref is None and new.status.phase == "Available"
        return self.options.names if free or moved else ()

    def _storage_keys(self, change: Change, view: View) -> Iterable[str]:
        return self.options.names if change.new is not None else ()

    def _attachment_keys(self, change: Change, view: View) -> Iterable[str]:
        """Returns the schedulers if a node has room for another volume."""
        return self.options.names if change.new is None else ()


class _Schedulers:
    """The Scheduler of each scheduler name, which a process keeps from pass to pass.

    They only cache what the informers have, so decisions do not depend on them.
    """

    def __init__(self, options: SchedulerOptions, rng: random.Random) -> None:
        self._options = options
        self._rng = rng
        self._lock = threading.Lock()
        self._schedulers: dict[str, Scheduler] = {}

    def of(self, name: str) -> Scheduler:
        with self._lock:
            if name not in self._schedulers:
                self._schedulers[name] = Scheduler(name, self._options, self._rng)
            return self._schedulers[name]


def _waits(pod: Pod) -> bool:
    return not pod.spec.node_name and not is_terminal(pod)


def _asks_anew(old: Pod, new: Pod) -> bool:
    """Reports whether a waiting pod has changed in a way that may affect where it can run."""
    return (
        old.metadata.labels != new.metadata.labels
        or old.deleting != new.deleting
        or old.status.nominated_node_name != new.status.nominated_node_name
        or old.spec != new.spec
    )


def _makes_room(old: Pod | None, new: Pod | None) -> bool:
    """Reports whether a pod came to a node, left it, or changed there in a way that matters."""
    if old is None:
        return new is not None and not is_terminal(new)
    if new is None:
        return bool(old.spec.node_name or old.status.nominated_node_name)
    return (
        old.spec.node_name != new.spec.node_name
        or is_terminal(old) != is_terminal(new)
        or old.deleting != new.deleting
        or old.metadata.labels != new.metadata.labels
        or old.metadata.generation != new.metadata.generation
    )
