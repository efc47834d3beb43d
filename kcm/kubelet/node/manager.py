"""The node manager: registers the Node object, renews its lease and reports its status.

Guarantees: while the store is unavailable only this thread waits for it, and everything is written
once it is available. A Node object that was deleted is created again only when the kubelet is
started again, as upstream, or when the store was emptied.

Source: registerWithAPIServer and syncNodeStatus in pkg/kubelet/kubelet_node_status.go, and
component-helpers/apimachinery/lease/controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import structlog

from kcm import errors
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node, NodeAddress, NodeCondition, NodeStatus
from kcm.apimachinery.quantity import Quantity
from kcm.clock import Clock
from kcm.helpers import node_reports
from kcm.helpers.node_reports import condition
from kcm.helpers.node_token import PROOF_ANNOTATION, TLS_ANNOTATION
from kcm.kubelet.images.store import ImageStore
from kcm.kubelet.node import objects
from kcm.kubelet.node.current_node import CurrentNode, ReportRequests
from kcm.kubelet.node.machine import MachineInfo
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.store import WriteItem
from kcm.store.objects import ObjectStore
from kcm.store.options import Subresource

log = structlog.get_logger("kcm.kubelet")

NODES = Node.resource
LEASES = Lease.resource
RETRY_INTERVAL = 1.0  # seconds, after a write that failed
_SHORTEST_WAIT = 0.05  # seconds
_RENEWALS_PER_LEASE = 4

BuildConditions = Callable[[NodeStatus, datetime], Sequence[NodeCondition]]
"""Returns the node's conditions but Ready, given the status last reported and the time."""


class NodeManager:
    """Registers the node, renews its lease and reports its status, all in the thread of `run`.

    `current` holds what it knows of the node.
    """

    def __init__(
        self,
        store: ObjectStore,
        options: KubeletOptions,
        *,
        current: CurrentNode,
        requests: ReportRequests,
        read_machine: Callable[[], MachineInfo],
        reserved: Mapping[str, Quantity],
        prove_address: Callable[[], str],
        readiness_errors: Callable[[], Sequence[str]],
        build_conditions: BuildConditions,
        recorder: KubeletEventRecorder,
        clock: Clock,
        images: ImageStore | None = None,
    ) -> None:
        """`prove_address` returns the proof that the node's address is its own, "" for none.

        `readiness_errors` returns why the node is not ready.

        `build_conditions` returns all of the node's conditions but Ready. `reserved` is the amount
        of each resource that pods cannot use. `images` is None if the node has none.
        """
        self._store = store
        self._options = options
        self._current = current
        self._requests = requests
        self._read_machine = read_machine
        self._reserved = reserved
        self._prove_address = prove_address
        self._readiness_errors = readiness_errors
        self._build_conditions = build_conditions
        self._recorder = recorder
        self._clock = clock
        self._images = images
        self._registered = False
        self._data_id = ""  # identifies the data that the node was registered in
        self._lease: Lease | None = None
        self._reported_at: datetime | None = None
        node = current.get()
        current.set(node.with_status(self._build_status(node, clock.now())))

    def run(self, stop: threading.Event) -> None:
        """Registers the node, then renews its lease and reports its status until `stop` is set."""
        next_lease = next_status = 0.0
        while not stop.is_set():
            now = self._clock.monotonic()
            try:
                self._detect_emptied_store()
                if not self._registered:
                    self.register()
                if now >= next_lease:
                    self.renew_lease()
                    next_lease = now + self._options.lease_duration / _RENEWALS_PER_LEASE
                if now >= next_status or self._requests.event.is_set():
                    requests = self._requests.begin()
                    self.report_status()
                    self._requests.fulfil(requests)
                    next_status = now + self._options.node_status_update_frequency
            except errors.KcmError as error:
                log.warning("the node was not written", error=str(error))
                self._clock.wait(stop, RETRY_INTERVAL)
                continue
            wait = max(min(next_lease, next_status) - now, _SHORTEST_WAIT)
            self._clock.wait(self._requests.event, wait)

    def _detect_emptied_store(self) -> None:
        data_id = self._store.data_id
        if self._data_id not in ("", data_id):
            self._registered, self._lease = False, None
        self._data_id = data_id

    def register(self) -> None:
        """Creates the Node object, or updates the labels of the existing one.

        Raises KcmError; StoreUnavailable also if there is no Node object and --register-node is
        off.
        """
        node = self._get_node()
        if node is None:
            node = self._create_node()
            log.info("Successfully registered node", node=self._options.node_name)
        else:
            node = self._update_reach(self._update_labels(node))
        self._current.set(node.with_status(self._build_status(node, self._clock.now())))
        self._registered = True
        self._recorder.record_node_event("Normal", "Starting", "Starting kubelet.")
        self._requests.request()

    def _create_node(self) -> Node:
        options = self._options
        if not options.register_node:
            raise errors.StoreUnavailable(
                f"node {options.node_name} is not registered, and --register-node is off"
            )
        node = objects.build_node(
            options.node_name,
            options.node_labels,
            options.register_with_taints,
            self._annotate_reach(),
        )
        node = node.with_status(self._current.get().status)
        return self._write(self._store.build_create(node))

    def _update_labels(self, node: Node) -> Node:
        return self._update(node, objects.update_labels(node, self._options.node_labels))

    def _update_reach(self, node: Node) -> Node:
        return self._update(node, objects.update_reach(node, self._annotate_reach()))

    def _update(self, node: Node, updated: Node) -> Node:
        item = self._store.build_update(updated, node) if updated is not node else None
        return self._write(item) if item is not None else node

    def _annotate_reach(self) -> dict[str, str]:
        """Returns the annotations that say how the node's HTTP API is reached. Raises KcmError."""
        reach = {} if self._options.certificate is not None else {TLS_ANNOTATION: "false"}
        if proof := self._prove_address():
            reach[PROOF_ANNOTATION] = proof
        return reach

    def _write(self, item: WriteItem[Node]) -> Node:
        return self._store.write([item])[0].get_stored()

    def _get_node(self) -> Node | None:
        return self._store.find(NODES, self._options.node_name)

    def renew_lease(self) -> None:
        """Renews the lease, or creates it. Raises Temporary and Conflict."""
        name, seconds = self._options.node_name, self._options.lease_duration
        now = self._clock.now()
        node, lease = self._current.get(), self._lease
        if lease is None:
            key = f"{node_reports.LEASE_NAMESPACE}/{name}"
            stored_lease = self._store.find(LEASES, key)
            lease = stored_lease if isinstance(stored_lease, Lease) else None
        if lease is None:
            item = self._store.build_create(node_reports.new_lease(node, seconds, now))
        else:
            renewed = node_reports.renew_lease(lease, node, seconds, now)
            modification = self._store.build_update(renewed, lease)
            assert modification is not None
            item = modification
        self._lease = None  # unknown until the write has succeeded
        stored = self._store.write([item])[0].get_stored()
        self._lease = stored if isinstance(stored, Lease) else None

    def report_status(self) -> None:
        """Writes the node status if it has changed, or if a report is due. Raises KcmError."""
        node, now = self._get_node(), self._clock.now()
        if node is None:
            log.warning("the node object is gone; restart the kubelet to create it again")
            return
        node = self._update_reach(node)  # the cluster's key may be another one by now
        status = self._build_status(node, now)
        self._current.set(node.with_status(status))
        if not self._is_report_due(now) and not node_reports.differs(status, node.status):
            return
        item = self._store.build_update(self._current.get(), node, subresource=Subresource.STATUS)
        if item is not None:
            stored = self._write(item)
            self._current.set(stored)
            self._record_transitions(node_reports.transitions(stored.status, node.status))
        self._reported_at = now

    def _is_report_due(self, now: datetime) -> bool:
        if self._reported_at is None:
            return True
        elapsed = (now - self._reported_at).total_seconds()
        return elapsed >= self._options.node_status_report_frequency

    def _record_transitions(self, reasons: Sequence[str]) -> None:
        for reason in reasons:
            text = f"Node {self._options.node_name} status is now: {reason}"
            self._recorder.record_node_event("Normal", reason, text)

    def _build_status(self, node: Node, now: datetime) -> NodeStatus:
        options = self._options
        machine = self._read_machine()
        now = now.replace(microsecond=0)
        status = objects.build_status(
            node,
            machine,
            capacity=machine.capacity(options.max_pods),
            reserved=self._reserved,
            addresses=[
                NodeAddress(type="InternalIP", address=options.node_ip),
                NodeAddress(type="Hostname", address=options.node_name),
            ],
            conditions=[
                *self._build_conditions(node.status, now),
                self._build_ready_condition(node.status, now),
            ],
            port=options.port,
        )
        if self._images is None:
            return status
        try:
            return status.replace(images=objects.build_images(self._images.list()))
        except errors.ContainerRuntimeError as error:
            log.warning("the node's images cannot be listed", error=str(error))
            return status

    def _build_ready_condition(self, previous: NodeStatus, now: datetime) -> NodeCondition:
        problems = self._readiness_errors()
        reason = (
            ("KubeletNotReady", ", ".join(problems))
            if problems
            else ("KubeletReady", "kubelet is posting ready status")
        )
        return condition("Ready", not problems, reason, previous, now)
