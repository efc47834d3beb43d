"""CloudNode: initializes new nodes with what the cloud knows about their instances.

A kubelet that runs with --cloud-provider=external registers its node with the taint
node.cloudprovider.kubernetes.io/uninitialized. This controller sets providerID, addresses and
labels (instance type, zone, region), and removes the taint. Addresses and labels of all nodes are
corrected every --node-status-update-frequency.

Source: staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go, Kubernetes 1.33.
Departure: each node is a key of its own in the corrections, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any

from pydantic import Field

from kcm import errors
from kcm.api.core_v1 import Node
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.cloud.cloudnode.nodes import (
    initialize,
    is_uninitialized,
    reconcile_labels,
    wanted_addresses,
    with_addresses,
)
from kcm.sdk import (
    Change,
    CloudUse,
    Controller,
    GetInstanceMetadata,
    KeyPolicy,
    Options,
    Outcome,
    Patch,
    Plan,
    View,
    Watch,
)


class CloudNodeOptions(Options):
    """The options of the cloud node controller."""

    node_status_update_frequency: timedelta = Field(
        timedelta(minutes=5),
        gt=timedelta(0),
        description="Specifies how often the controller updates nodes' status",
    )
    concurrent_node_syncs: int = Field(
        default=10,
        ge=1,
        description="Number of workers concurrently synchronizing nodes (upstream: 1)",
    )


class CloudNodeController(Controller):
    """Initializes nodes, and corrects their addresses and labels. A key is a node."""

    name = "cloud-node-controller"
    short_name = "cloudnode"
    group = "nodes"
    options_type = CloudNodeOptions
    options: CloudNodeOptions
    cloud = CloudUse("instances_v2", polls=True)
    keys = KeyPolicy(timeout=300.0)

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Node, nodes_to_sync),)

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_node_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        node = view.lister(Node).find(key)
        if node is None:
            return Plan()
        after = self._initialize if is_uninitialized(node) else self._correct
        return Plan(calls=[GetInstanceMetadata(node)], plan_after=partial(after, node))

    def _initialize(self, node: Node, outcome: Outcome) -> Plan:
        (answer,) = outcome.answers
        if answer.error is not None:
            why = f"failed to get instance metadata for node {node.name}: {answer.error}"
            return Plan(error=errors.KcmError(why))
        if answer.value.node_addresses:
            try:
                wanted_addresses(node, answer.value.node_addresses)
            except errors.ApiError as error:
                why = f"failed to get node modifiers from cloud provider: {error.message}"
                return Plan(error=errors.KcmError(why))
        plan = Plan(requeue_after=self._period)
        plan.then(Patch(node, partial(initialize, answer.value)))
        plan.then(Patch(node, partial(with_addresses, answer.value), status=True))
        return plan.record(node, "Synced", "Node synced successfully")

    def _correct(self, node: Node, outcome: Outcome) -> Plan:
        """Returns the plan that corrects a node. If the cloud does not answer, the next correction
        is soon enough.
        """
        (answer,) = outcome.answers
        plan = Plan(requeue_after=self._period)
        if answer.error is None:
            plan.then(*self._corrections(node, partial(with_addresses, answer.value)))
        if reconcile_labels(node) is not node:
            plan.then(Patch(node, reconcile_labels))
        return plan

    def _corrections(
        self, node: Node, change: Callable[[KubeObject], KubeObject]
    ) -> Iterable[Patch]:
        try:
            if change(node) is not node:
                yield Patch(node, change, status=True)
        except errors.ApiError:
            return  # The address that the kubelet was given is gone: the old ones stay.

    @property
    def _period(self) -> float:
        return self.options.node_status_update_frequency.total_seconds()


def nodes_to_sync(change: Change, view: View) -> Iterable[str]:
    """Yields a node that is new, or waits to be initialized."""
    node = change.new
    if isinstance(node, Node) and (change.old is None or is_uninitialized(node)):
        yield node.key
