"""The pytest plugin: control planes as fixtures.

It imports nothing of kcm until a test asks for a fixture.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kcm.testing.control_plane.plane import ControlPlane

_MARKER = "kcm"
_NUMBERS = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the session's control plane."""
    parser.addini("kcm_nodes", "number of simulated nodes of the fixture `kcm`", default="1")
    parser.addini(
        "kcm_flags", "flags of `kcm manager` for the fixture `kcm`", type="args", default=[]
    )
    parser.addini(
        "kcm_patience", "how long `kcm_namespace` waits for its namespace's end", default="30s"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(nodes=1, flags=(), controllers=('*',), config=None): the arguments of "
        "ControlPlane for the fixture `kcm_fresh`",
    )


@pytest.fixture(scope="session")
def kcm(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane that all tests of the session share; `kcm_namespace` keeps them apart."""
    ini = request.config.getini
    with _control_plane(nodes=int(ini("kcm_nodes")), flags=ini("kcm_flags")) as control_plane:
        yield control_plane


@pytest.fixture
def kcm_fresh(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane of the test's own, with the arguments of its marker `kcm`."""
    marker = request.node.get_closest_marker(_MARKER)
    with _control_plane(**(marker.kwargs if marker else {})) as control_plane:
        yield control_plane


@pytest.fixture
def kcm_namespace(request: pytest.FixtureRequest, kcm: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own, which is deleted afterwards.

    The test fails if the namespace cannot be deleted, for example because a finalizer is left.
    """
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    name = f"{words or 'test'}-{next(_NUMBERS)}"
    kcm.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    kcm.eventually(
        lambda: kcm.get("serviceaccount/default", name), what=f"the service account of {name}"
    )
    yield name
    kcm.faults.clear()
    kcm.nodes.heal()
    kcm.delete(f"namespace/{name}")
    patience = request.config.getini("kcm_patience")
    try:
        kcm.eventually(lambda: not _exists(kcm, name), patience, f"the end of namespace {name}")
    except AssertionError as late:
        raise AssertionError(f"{late}: {_why_left(kcm, name)}") from None


def _control_plane(**arguments: Any) -> ControlPlane:
    from kcm.testing.control_plane.plane import ControlPlane  # noqa: PLC0415 - see the module

    return ControlPlane(**arguments)


def _exists(control_plane: ControlPlane, namespace: str) -> bool:
    names = (one["metadata"]["name"] for one in control_plane.list("namespaces", None))
    return namespace in names


def _why_left(control_plane: ControlPlane, namespace: str) -> str:
    """Returns what the namespace's conditions say about what is left in it."""
    conditions = control_plane.get(f"namespace/{namespace}").get("status", {}).get("conditions", [])
    true = [c.get("message", "") for c in conditions if c.get("status") == "True"]
    return "; ".join(true) or "it has no conditions"
