"""The Node object as the kubelet knows it, and requests to report the node status."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import structlog

from kcm import errors
from kcm.api.core_v1 import Node
from kcm.apimachinery.quantity import ResourceList

log = structlog.get_logger("kcm.kubelet")


class CurrentNode:
    """Holds the node as last seen in the store; before its registration, the node to register.

    The node manager sets it, any thread may read it.
    """

    def __init__(self, node: Node, find: Callable[[], Node | None] = lambda: None) -> None:
        """`find` reads the node from the store. It may wait, and raise Temporary."""
        self._node = node
        self._find = find

    def get(self) -> Node:
        """Returns the node."""
        return self._node

    def look_up(self) -> Node:
        """Returns the node as it is in the store now, or as last seen if it cannot be read."""
        try:
            return self._find() or self._node
        except errors.Temporary as error:
            log.info("The node was not read", error=str(error))
            return self._node

    def set(self, node: Node) -> None:
        """Replaces the node."""
        self._node = node

    def get_registered(self) -> Node | None:
        """Returns the node if it was ever seen in the store, else None."""
        node = self._node
        return node if node.uid else None

    @property
    def allocatable(self) -> ResourceList:
        return self._node.status.allocatable or {}

    @property
    def pod_cidrs(self) -> Sequence[str]:
        """The address ranges of the node's pods; () if the node has none."""
        spec = self._node.spec
        return spec.pod_cidrs or ([spec.pod_cidr] if spec.pod_cidr else ())


class ReportRequests:
    """Requests to report the node status, and whether they were fulfilled. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._requested = 0
        self._fulfilled = 0
        self.event = threading.Event()  # set while a request waits for the node manager

    def request(self) -> None:
        """Requests a report from the node manager as soon as possible."""
        with self._changed:
            self._requested += 1
            self.event.set()

    def begin(self) -> int:
        """Marks the start of a report. Returns the number of requests that it will fulfil."""
        with self._changed:
            self.event.clear()
            return self._requested

    def fulfil(self, count: int) -> None:
        """Marks the first `count` requests as fulfilled."""
        with self._changed:
            self._fulfilled = max(self._fulfilled, count)
            self._changed.notify_all()

    def wait_until_fulfilled(self, timeout: float) -> bool:
        """Waits until all requests so far are fulfilled; returns False after `timeout` seconds."""
        with self._changed:
            requested = self._requested
            return self._changed.wait_for(lambda: self._fulfilled >= requested, timeout)
