from __future__ import annotations

import fcntl
import os
import resource
from collections.abc import Iterator

import pytest

from kcm.kubelet.runtime.process.client import readable

MANY = 1500  # more than `select` can look at


@pytest.fixture
def high() -> Iterator[tuple[int, int]]:
    """Yields a pipe whose reading end has a high descriptor number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard not in (-1, resource.RLIM_INFINITY) and hard <= MANY:
        pytest.skip(f"this user may open {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MANY + 10), hard))
    reader, writer = os.pipe()
    moved = fcntl.fcntl(reader, fcntl.F_DUPFD_CLOEXEC, MANY)
    yield moved, writer
    for descriptor in (reader, moved, writer):
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_descriptors_with_high_numbers_can_be_waited_for(high: tuple[int, int]) -> None:
    reader, writer = high
    assert readable([reader], 0) == []
    os.write(writer, b"x")
    assert readable([reader], None) == [reader]


def test_waiting_for_nothing_ends_in_time() -> None:
    assert readable([], 0.01) == []


def test_an_end_can_be_read() -> None:
    reader, writer = os.pipe()
    os.close(writer)
    assert readable([reader], 5) == [reader]
    os.close(reader)
