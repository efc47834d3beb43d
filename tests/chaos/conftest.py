"""The cluster that chaos tests break, and the closing line of `make chaos`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos import workload
from tests.chaos.cluster import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Gives two workers with their managers, two beats, and a server behind a proxy."""
    cluster = Cluster(workers=2, beats=2)
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
