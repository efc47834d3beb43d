"""Fixtures of the kubelet's tests: real processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.kubelet.runtimes import RealRuntime


@pytest.fixture
def real(tmp_path: Path) -> Iterator[RealRuntime]:
    real = RealRuntime(tmp_path)
    yield real
    real.close()
