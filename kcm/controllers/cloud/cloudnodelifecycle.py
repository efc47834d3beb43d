"""CloudNodeLifecycle: deletes the nodes of deleted instances, and taints those of stopped ones.

Only nodes that are not ready are asked about, every --node-monitor-period. A node that is ready
again loses the taint.

Source: staging/src/k8s.io/cloud-provider/controllers/nodelifecycle/node_lifecycle_controller.go,
Kubernetes 1.33.
Departure: each node is a key that is asked about until it is ready, so that nothing is done while
all are, and a slow answer about one node delays no other. Upstream looks at all nodes in turn. When
more than a hundred nodes are not ready, each of them is asked about less often, so that their
questions leave the workers to what an outage of that size needs.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from kcm import errors
from kcm.api.core_v1 import Node, Taint
from kcm.helpers.node_reports import ready_status
from kcm.informers.store import Tally
from kcm.sdk import (
    ORPHANS,
    Change,
    CloudUse,
    Controller,
    Delete,
    InstanceExists,
    InstanceShutdown,
    KeyPolicy,
    Options,
    Outcome,
    Patch,
    Plan,
    View,
    Watch,
    shared_option,
)

NODES_PER_SECOND = 20  # the most that are asked about
READINESS = Tally(ORPHANS, ready_status)  # the number of nodes by the status of their readiness
SHUTDOWN_TAINT = "node.cloudprovider.kubernetes.io/shutdown"


class CloudNodeLifecycleOptions(Options):
    """The options of the cloud node lifecycle controller."""

    node_monitor_period: timedelta = shared_option(
        timedelta(seconds=5), "node-lifecycle-controller"
    )


class CloudNodeLifecycleController(Controller):
    """Asks the cloud about nodes that are not ready. A key is a node."""

    name = "cloud-node-lifecycle-controller"
    short_name = "cloudnodelifecycle"
    group = "nodes"
    options_type = CloudNodeLifecycleOptions
    options: CloudNodeLifecycleOptions
    cloud = CloudUse("instances_v2")
    keys = KeyPolicy(
        timeout=300.0,
        first_retry=5.0,  # as often as upstream looks at all nodes
        longest_retry=60.0,
    )
    tallies = ((Node, READINESS),)

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Node, nodes_to_check),)

    def concurrent_syncs(self) -> int:
        return 10

    def reconcile(self, key: str, view: View) -> Plan:
        node = view.lister(Node).find(key)
        if node is None:
            return Plan()
        if ready_status(node) == "True":
            return Plan().then(Patch(node, _without_taint)) if _is_tainted(node) else Plan()
        interval = self._interval(view)
        wait = self._first_wait(node, interval) - _seconds_not_ready(node, view.now)
        if wait > 0:
            return Plan(requeue_after=wait)
        return Plan(calls=[InstanceExists(node)], plan_after=partial(self._act, node, interval))

    def _interval(self, view: View) -> float:
        """Returns the seconds between two questions about a node."""
        by_readiness = view.lister(Node).tally(READINESS, "")
        unready = sum(count for status, count in by_readiness.items() if status != "True")
        return max(self.options.node_monitor_period.total_seconds(), unready / NODES_PER_SECOND)

    def _first_wait(self, node: Node, interval: float) -> float:
        """Returns the seconds between the moment the node became unready and the first question.

        If many nodes are not ready, they are spread over the interval by their names.
        """
        spread = interval - self.options.node_monitor_period.total_seconds()
        return spread * (zlib.crc32(node.name.encode()) / 2**32)

    def _act(self, node: Node, interval: float, outcome: Outcome) -> Plan:
        """Returns the plan after the answer whether the instance exists."""
        (answer,) = outcome.answers
        if answer.error is not None:
            why = f"error checking if node {node.name} exists: {answer.error}"
            return Plan(error=errors.KcmError(why))
        if answer.value:
            follows = partial(self._taint, node, interval)
            return Plan(calls=[InstanceShutdown(node)], plan_after=follows)
        message = f"Deleting node {node.name} because it does not exist in the cloud provider"
        return Plan().then(Delete(node)).record(node, "DeletingNode", message)

    def _taint(self, node: Node, interval: float, outcome: Outcome) -> Plan:
        """Returns the plan after the answer whether the instance is shut down."""
        (answer,) = outcome.answers
        if answer.error is not None:
            why = f"error checking if node {node.name} is shutdown: {answer.error}"
            return Plan(error=errors.KcmError(why))
        plan = Plan(requeue_after=interval)
        if answer.value and not _is_tainted(node):
            plan.then(Patch(node, _with_taint))
        return plan


def nodes_to_check(change: Change, view: View) -> Iterable[str]:
    """Yields a node that is not ready, or has the taint, and was something else before."""
    old, node = change.old, change.new
    if not isinstance(node, Node):
        return
    ready = ready_status(node)
    if ready == "True" and not _is_tainted(node):
        return
    before = (ready_status(old), _is_tainted(old)) if isinstance(old, Node) else None
    if before != (ready, _is_tainted(node)):
        yield node.key


def _seconds_not_ready(node: Node, now: datetime) -> float:
    """Returns for how long the node has not been ready, infinity if nothing says since when."""
    for condition in node.status.conditions or ():
        if condition.type == "Ready" and condition.last_transition_time is not None:
            return (now - condition.last_transition_time).total_seconds()
    return math.inf


def _is_tainted(node: Node) -> bool:
    return any(taint.key == SHUTDOWN_TAINT for taint in node.spec.taints or ())


def _with_taint(obj: Node) -> Node:
    if _is_tainted(obj):
        return obj
    taint = Taint(key=SHUTDOWN_TAINT, effect="NoSchedule")
    return obj.with_spec(obj.spec.replace(taints=[*(obj.spec.taints or ()), taint]))


def _without_taint(obj: Node) -> Node:
    if not _is_tainted(obj):
        return obj
    kept = [taint for taint in obj.spec.taints or () if taint.key != SHUTDOWN_TAINT]
    return obj.with_spec(obj.spec.replace(taints=kept or None))
