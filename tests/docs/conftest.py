"""The folder in which the documents' commands run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.docs.workplace import Workplace


@pytest.fixture(scope="session")
def workplace() -> Iterator[Workplace]:
    """Gives a running kcm in a reader's folder, one per test process."""
    place = Workplace()
    try:
        place.start()
        yield place
    finally:
        place.stop()
