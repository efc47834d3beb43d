"""The pytest plugin: control planes as fixtures.

It imports nothing of kcm until a test asks for a fixture.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Iterator
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kcm.testing.control_plane.plane import ControlPlane
    from kcm.testing.control_plane.timing import Timekeeper
    from kcm.testing.history.looking import Looking
    from kcm.testing.history.watched import Watched

pytest_plugins = ("kcm.testing.clients",)

_MARKER = "kcm"
_NUMBERS = itertools.count(1)
_SHARED: pytest.StashKey[Watched] = pytest.StashKey()  # of the configuration
_WATCHED: pytest.StashKey[Watched] = pytest.StashKey()  # of a test


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the session's control plane."""
    parser.addini("kcm_nodes", "number of simulated nodes of the fixture `kcm`", default="1")
    parser.addini(
        "kcm_flags", "flags of `kcm manager` for the fixture `kcm`", type="args", default=[]
    )
    parser.addini(
        "kcm_patience", "how long `kcm_namespace` waits for its namespace's end", default="30s"
    )
    parser.addini(
        "kcm_crds",
        "files and folders of CustomResourceDefinitions for `kcm`, and for `kcm_fresh` if its "
        "marker names none",
        type="paths",
        default=[],
    )
    parser.addini(
        "kcm_grace",
        "how long operators are quiet, in real time, before a wait moves a clock that stands still",
        default="5s",
    )
    group = parser.getgroup("kcm")
    group.addoption(
        "--kcm-report",
        metavar="DIR",
        type=Path,
        help="write a page for each failed test into this folder, with the timeline of its "
        "control plane",
    )
    group.addoption(
        "--kcm-report-all",
        action="store_true",
        help="write a page for each test that uses a control plane",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(nodes=1, flags=(), controllers=('*',), config=None, seed=None, "
        "mode='loop', grace='5s', crds=None, bare=False, storage_class=True, programs=False): the "
        "arguments of ControlPlane for the fixture `kcm_fresh`",
    )


@pytest.fixture(scope="session")
def kcm(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane that all tests of the session share; `kcm_namespace` keeps them apart."""
    ini = request.config.getini
    with _control_plane(
        request.config, nodes=int(ini("kcm_nodes")), flags=ini("kcm_flags")
    ) as control_plane:
        request.config.stash[_SHARED] = _begin_to_watch(control_plane)
        yield control_plane
        del request.config.stash[_SHARED]


@pytest.fixture
def kcm_fresh(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane of the test's own, with the arguments of its marker `kcm`."""
    marker = request.node.get_closest_marker(_MARKER)
    with _control_plane(request.config, **(marker.kwargs if marker else {})) as control_plane:
        request.node.stash[_WATCHED] = _begin_to_watch(control_plane)
        yield control_plane


@pytest.fixture
def kcm_clock(_kcm_plane: ControlPlane) -> Iterator[Timekeeper]:
    """The clock of the test's control plane, which stands still during the test.

    Afterwards the time goes on from where it stands.
    """
    clock, stood = _kcm_plane.clock, _kcm_plane.clock.frozen
    clock.freeze()
    yield clock
    if not stood:
        clock.run()


@pytest.fixture
def kcm_namespace(request: pytest.FixtureRequest, _kcm_plane: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own, which is deleted afterwards.

    The test fails if the namespace cannot be deleted, for example because a finalizer is left.
    """
    kcm = _kcm_plane
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    name = f"{words or 'test'}-{next(_NUMBERS)}"
    watched = request.node.stash.get(_WATCHED, None) or _begin_to_watch(kcm)
    request.node.stash[_WATCHED] = watched.of_namespace(name)
    kcm.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    if not kcm.bare:
        kcm.eventually(
            lambda: kcm.get("serviceaccount/default", name), what=f"the service account of {name}"
        )
    yield name
    kcm.faults.clear()
    kcm.nodes.heal()
    if kcm.bare:  # where namespaces do not end
        return
    kcm.delete(f"namespace/{name}")
    patience = request.config.getini("kcm_patience")
    try:
        kcm.eventually(lambda: not _exists(kcm, name), patience, f"the end of namespace {name}")
    except AssertionError as late:
        raise AssertionError(f"{late}: {_why_left(kcm, name)}") from None


def _begin_to_watch(control_plane: Looking) -> Watched:
    from kcm.testing.history.watched import Watched  # noqa: PLC0415 - see the module

    return Watched.begin(control_plane)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begins to watch the session's control plane for a test that uses it. For the first one, that
    is when the control plane has started.
    """
    shared = _find_shared(item)
    if shared is not None:
        item.stash[_WATCHED] = _begin_to_watch(shared.control_plane)


def _find_shared(item: pytest.Item) -> Watched | None:
    """Returns the session's control plane if it has started and the test uses it."""
    names = getattr(item, "fixturenames", ())
    uses = "kcm" in names or ("_kcm_plane" in names and "kcm_fresh" not in names)
    return item.config.stash.get(_SHARED, None) if uses else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Forgets a control plane when the test that used it has ended."""
    try:
        return (yield)
    finally:
        if _WATCHED in item.stash:
            del item.stash[_WATCHED]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fails the test if something happened that it said must never happen."""
    __tracebackhide__ = True
    watched = item.stash.get(_WATCHED, None) or _find_shared(item)
    if watched is None:
        return (yield)
    item.stash[_WATCHED] = watched
    try:
        result = yield
        watched.check()
        return result
    finally:
        watched.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the timeline to the report of a failed test, and writes its page."""
    report = yield
    watched = item.stash.get(_WATCHED, None)
    if watched is None:
        return report
    lines = [watched.timeline()] if report.failed else []
    folder, every = item.config.getoption("--kcm-report"), item.config.getoption("--kcm-report-all")
    if folder is not None and (report.failed or (every and report.when == "call")):
        failure = report.longreprtext if report.failed else ""
        lines.append(watched.write_page(folder, item.nodeid, report.outcome, failure))
    if lines:
        report.sections.append(("timeline of the control plane", "\n".join(lines)))
    return report


def _control_plane(config: pytest.Config, **arguments: Any) -> ControlPlane:
    from kcm.testing.control_plane.plane import ControlPlane  # noqa: PLC0415 - see the module

    if unknown := arguments.keys() - signature(ControlPlane).parameters:
        raise pytest.UsageError(
            f"the marker kcm has no argument {', '.join(sorted(unknown))}: use "
            f"{', '.join(signature(ControlPlane).parameters)}"
        )
    defaults = {"grace": config.getini("kcm_grace"), "crds": config.getini("kcm_crds") or None}
    return ControlPlane(**{**defaults, **arguments})


def _exists(control_plane: ControlPlane, namespace: str) -> bool:
    names = (one["metadata"]["name"] for one in control_plane.list("namespaces", None))
    return namespace in names


def _why_left(control_plane: ControlPlane, namespace: str) -> str:
    """Returns what the namespace's conditions say about what is left in it."""
    conditions = control_plane.get(f"namespace/{namespace}").get("status", {}).get("conditions", [])
    true = [c.get("message", "") for c in conditions if c.get("status") == "True"]
    return "; ".join(true) or "it has no conditions"
