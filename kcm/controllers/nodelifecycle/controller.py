"""NodeLifecycle: taints nodes that become unreachable or not ready, and evicts their pods.

It has two periodic loops and syncs. The tick `monitorNodeStatus` checks every node's status and
lease, sets unreachable nodes to Unknown, and computes the states and queues of the zones
(`monitor`). The tick `doNoExecuteTaintingPass`, or `doEvictionPass` without the taint manager,
processes these queues (`eviction`). A sync of a node's key sets its NoSchedule taints at once.

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from pydantic import Field

from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node, Pod
from kcm.controllers.nodelifecycle import eviction, pods, taints
from kcm.controllers.nodelifecycle.memory import LifecycleMemory
from kcm.controllers.nodelifecycle.monitor import (
    EVICTING,
    EVICTION_PERIOD,
    NODE_LEASES,
    TAINTING,
    GracePeriods,
    Monitor,
)
from kcm.controllers.nodelifecycle.zones import EvictionRates
from kcm.helpers.pods import is_ready
from kcm.sdk import (
    Change,
    Controller,
    Options,
    PassPlan,
    PassView,
    Patch,
    Plan,
    Tick,
    View,
    Watch,
    newest,
)

MONITORING = "monitorNodeStatus"
_NEVER = timedelta(0)


class NodeLifecycleOptions(Options):
    """The options of the node lifecycle controller."""

    node_monitor_period: timedelta = Field(
        timedelta(seconds=5),
        gt=_NEVER,
        description="The period for syncing NodeStatus in the node lifecycle controller",
    )
    node_monitor_grace_period: timedelta = Field(
        timedelta(seconds=50),
        gt=_NEVER,
        description="Amount of time which we allow running Node to be unresponsive before marking "
        "it unhealthy. Must be N-1 times more than kubelet's nodeStatusUpdateFrequency, where N "
        "means number of retries allowed for kubelet to post node status",
    )
    node_startup_grace_period: timedelta = Field(
        timedelta(seconds=60),
        ge=_NEVER,
        description="Amount of time which we allow starting Node to be unresponsive before "
        "marking it unhealthy",
    )
    node_eviction_rate: float = Field(
        0.1,
        ge=0,
        description="Number of nodes per second on which pods are deleted in case of node failure "
        "when a zone is healthy (see --unhealthy-zone-threshold for definition of "
        "healthy/unhealthy). Zone refers to entire cluster in non-multizone clusters",
    )
    secondary_node_eviction_rate: float = Field(
        0.01,
        ge=0,
        description="Number of nodes per second on which pods are deleted in case of node failure "
        "when a zone is unhealthy. Is implicitly overridden to 0 if the cluster size is smaller "
        "than --large-cluster-size-threshold",
    )
    large_cluster_size_threshold: int = Field(
        50,
        description="Number of nodes from which the node lifecycle controller treats the cluster "
        "as large for the eviction logic purposes",
    )
    unhealthy_zone_threshold: float = Field(
        0.55,
        ge=0,
        le=1,
        description="Fraction of Nodes in a zone which needs to be not Ready (minimum 3) for zone "
        "to be treated as unhealthy",
    )
    enable_taint_manager: bool = Field(
        True,
        description="If set to true enables NoExecute Taints and will evict all not-tolerating "
        "Pods running on Nodes tainted with this kind of Taints. If false, pods are deleted "
        "after --pod-eviction-timeout (removed from Kubernetes in 1.27)",
    )
    pod_eviction_timeout: timedelta = Field(
        timedelta(minutes=5),
        ge=_NEVER,
        description="The grace period for deleting pods on failed nodes, without the taint manager",
    )


class NodeLifecycleController(Controller):
    """Taints nodes that are unreachable or not ready, zone by zone, and removes the taints later.

    A key is a node, or a pod that was bound to a node that is not ready.
    """

    name = "node-lifecycle-controller"
    short_name = "nodelifecycle"
    group = "nodes"
    metrics = (eviction.EVICTIONS,)
    options_type = NodeLifecycleOptions
    options: NodeLifecycleOptions

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Node, node_keys), Watch(Pod, pod_keys))

    def concurrent_syncs(self) -> int:
        return 8  # upstream's nodeUpdateWorkerSize

    def ticks(self) -> tuple[Tick, ...]:
        period = self.options.node_monitor_period.total_seconds()
        working_off = (
            (TAINTING, eviction.taint_nodes)
            if self.options.enable_taint_manager
            else (EVICTING, eviction.evict_pods)
        )
        return (
            Tick(MONITORING, period, self.monitor, lists=((Lease, NODE_LEASES),)),
            Tick(
                working_off[0],
                EVICTION_PERIOD,
                working_off[1],
                sees=MONITORING,
                fields=("zones",),
            ),
        )

    def monitor(self, view: PassView, state: Mapping[str, str]) -> PassPlan:
        """Returns the plan of one pass over all nodes."""
        memory = LifecycleMemory.load(state)
        memory.bridge(view.moment, view.epoch, self.options.node_monitor_period.total_seconds())
        plan = Monitor(view, memory, self._grace(), self._rates()).run()
        plan.state = memory.dump()
        return plan

    def _grace(self) -> GracePeriods:
        options = self.options
        timeout = options.pod_eviction_timeout.total_seconds()
        return GracePeriods(
            running=options.node_monitor_grace_period.total_seconds(),
            startup=options.node_startup_grace_period.total_seconds(),
            eviction=None if options.enable_taint_manager else timeout,
        )

    def _rates(self) -> EvictionRates:
        options = self.options
        return EvictionRates(
            normal=options.node_eviction_rate,
            secondary=options.secondary_node_eviction_rate,
            large_cluster=options.large_cluster_size_threshold,
            unhealthy_threshold=options.unhealthy_zone_threshold,
        )

    def reconcile(self, key: str, view: View) -> Plan:
        """Sets a node's NoSchedule taints and labels, or the status of a pod on a node that is not
        ready.
        """
        if "/" in key:
            return _mark_pod(key, view)
        node = view.lister(Node).find(key)
        if node is None or taints.reconcile_no_schedule(view.now, node) is node:
            return Plan()
        return Plan().then(Patch(node, partial(taints.reconcile_no_schedule, view.now)))


def node_keys(change: Change, view: View) -> Iterable[str]:
    """Yields the key of a node whose taints or labels are wrong. Heartbeats alone yield nothing."""
    if (
        not isinstance(change.new, Node)
        or taints.reconcile_no_schedule(view.now, change.new) is change.new
    ):
        return
    node = newest(change.new, view)  # the pass for NoExecute taints may have set them already
    if taints.reconcile_no_schedule(view.now, node) is not node:
        yield node.key


def pod_keys(change: Change, view: View) -> Iterable[str]:
    """Yields the key of a pod that was just bound to a node that is not ready."""
    old, new = change.old, change.new
    if not isinstance(new, Pod) or not new.spec.node_name:
        return
    if isinstance(old, Pod) and old.spec.node_name == new.spec.node_name:
        return
    if _is_on_dead_node(new, view):
        yield new.key


def _is_on_dead_node(pod: Pod, view: View) -> bool:
    node = view.lister(Node).find(pod.spec.node_name or "")
    ready = taints.ready_condition(node) if node is not None else None
    return ready is not None and ready.status != "True"


def _mark_pod(key: str, view: View) -> Plan:
    pod = view.lister(Pod).find(key)
    if pod is None or not is_ready(pod) or not _is_on_dead_node(pod, view):
        return Plan()
    plan = Plan().then(Patch(pod, partial(pods.mark_not_ready, view.now), status=True))
    return plan.record(pod, "NodeNotReady", "Node is not ready", warning=True)
