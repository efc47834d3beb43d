"""A namespace for each test of a client library."""

from __future__ import annotations

import itertools

import pytest

from tests.integration.apiserver.serving import Live

_NUMBERS = itertools.count()


@pytest.fixture
def namespace(api: Live) -> str:
    """Returns a namespace that only this test uses."""
    name = f"client-{next(_NUMBERS)}"
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return name
