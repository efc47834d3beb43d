"""The cluster that chaos tests break, and the closing line of `make chaos`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.chaos import workload
from tests.chaos.cluster import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Gives two workers with their managers, two beats, and a server behind a proxy."""
    with _run(Cluster(workers=2, beats=2)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def threaded() -> Iterator[Cluster]:
    """Gives the same with workers that are managers and run syncs in threads, as `kcm up` does."""
    with _run(Cluster(workers=2, beats=2, pool="threads", concurrency=4)) as cluster:
        yield cluster


@contextmanager
def _run(cluster: Cluster) -> Iterator[Cluster]:
    try:
        cluster.start()
        workload.prepare(cluster)
        cluster.settle()
        yield cluster
    finally:
        cluster.stop()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the closing line that `make chaos` promises."""
    passed, *failed = (
        len(terminalreporter.stats.get(outcome, [])) for outcome in ("passed", "failed", "error")
    )
    terminalreporter.write_line(f"{passed} passed, {sum(failed)} failed")
