"""A control plane for the tests of faults, and clients as an operator has them."""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from kcm.testing import ControlPlane

_NUMBERS = itertools.count(1)
OPERATOR = "my-operator/1.0"


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    with ControlPlane(nodes=1) as started:
        yield started


@pytest.fixture
def cp(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane, without faults of the test before."""
    assert control_plane.faults.active == []
    yield control_plane
    control_plane.faults.clear()


@pytest.fixture
def name() -> str:
    """A name that no other test has."""
    return f"one-{next(_NUMBERS)}"


@pytest.fixture
def connect(control_plane: ControlPlane) -> Iterator[Callable[..., httpx.Client]]:
    """Returns clients with a user agent."""
    opened: list[httpx.Client] = []

    def build(agent: str = OPERATOR, **options: Any) -> httpx.Client:
        authority = control_plane.kubeconfig.parent / "apiserver.crt"
        headers = {"authorization": f"Bearer {control_plane.token}", "user-agent": agent}
        client = httpx.Client(
            base_url=control_plane.url,
            headers=headers,
            verify=ssl.create_default_context(cafile=str(authority)),
            **{"timeout": 20.0, **options},
        )
        opened.append(client)
        return client

    yield build
    for client in opened:
        client.close()


@pytest.fixture
def operator(connect: Callable[..., httpx.Client]) -> httpx.Client:
    return connect()
