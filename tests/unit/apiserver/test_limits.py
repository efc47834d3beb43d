from __future__ import annotations

from contextlib import ExitStack

import pytest

from kcm.apiserver.limits import InFlight, Limits
from kcm.apiserver.refusals import TooManyRequests


def test_reads_and_writes_are_counted_apart() -> None:
    flight = InFlight(Limits(2, 1))
    with ExitStack() as stack:
        for method in ("GET", "HEAD", "POST"):
            stack.enter_context(flight.one(method))
        assert flight.now == {"readOnly": 2, "mutating": 1}
        for method in ("GET", "PATCH"):
            with pytest.raises(TooManyRequests), flight.one(method):
                pass
    assert flight.now == {"readOnly": 0, "mutating": 0}


def test_zero_is_no_limit() -> None:
    flight = InFlight(Limits(0, 0))
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(flight.one("GET"))
