"""A control plane in the test's process, for scenarios that need no processes of their own.

It runs the same controllers as `kcm up`; tests/scenarios/test_agreement.py says that both come to
the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Protocol

import pytest

from kcm.testing import ControlPlane, Timekeeper
from tests.scenarios.cluster import Cluster
from tests.scenarios.system import Kcm


class Plane(Kcm):
    """Has the methods of `System` that need no processes. Its time stands still at first."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        super().__init__(plane.kubeconfig.parent, plane.kubeconfig.parent)

    @property
    def clock(self) -> Timekeeper:
        return self.plane.clock

    def apply(self, manifest: str) -> None:
        """Applies a manifest on the server."""
        self.plane.apply(manifest)

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Waits for up to an hour of the control plane's time, which passes as fast as it can."""
        self.plane.eventually(condition, within="1h", what=what)


class StartPlane(Protocol):
    """Starts a control plane, which stops at the end of the test."""

    def __call__(self, *flags: str, nodes: int = 3) -> Plane: ...


@pytest.fixture
def start_plane() -> Iterator[StartPlane]:
    with ExitStack() as stack:

        def start(*flags: str, nodes: int = 3) -> Plane:
            plane = stack.enter_context(ControlPlane(nodes=nodes, flags=flags))
            plane.clock.freeze()
            return Plane(plane)

        yield start


@contextmanager
def running_in_process(nodes: int = 3) -> Iterator[Cluster]:
    """Yields a control plane with simulated nodes, in the time of the machine."""
    with ControlPlane(nodes=nodes) as plane:
        cluster = Cluster(Plane(plane))
        with closing(cluster.client):
            yield cluster
