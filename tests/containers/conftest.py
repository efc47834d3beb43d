"""Fixtures of the tests with real containers, which skip with a word where there can be none."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.cluster import Cluster
from tests.containers.machine import find_missing
from tests.scenarios.system import KUBECTL


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Gives kcm on a machine with containerd, one per module."""
    missing = find_missing() or ("" if KUBECTL else "needs kubectl, see KCM_KUBECTL_DIR")
    if missing:
        pytest.skip(missing)
    folder = Path(tempfile.mkdtemp(prefix="kcm-ct-"))  # short: it holds a socket
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
