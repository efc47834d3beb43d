"""Times and durations as tests write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kcm.testing.builders import START
from kcm.testing.clock import FakeClock
from kcm.testing.control_plane.rest import Rest
from kcm.testing.control_plane.timing import RealTime, to_moment

YEAR_2030 = 1_893_456_000.0


@pytest.mark.parametrize(
    "time",
    ["2030-01-01T00:00Z", "2030-01-01T02:00:00+02:00", datetime(2030, 1, 1, tzinfo=UTC)],
)
def test_a_time_is_text_or_a_datetime_with_its_zone(time: str | datetime) -> None:
    assert to_moment(time) == YEAR_2030


@pytest.mark.parametrize("time", ["2030-01-01T00:00", datetime(2030, 1, 1)])
def test_a_time_without_a_zone_is_refused(time: str | datetime) -> None:
    with pytest.raises(ValueError, match="has no time zone: write 2030-01-01T00:00:00Z"):
        to_moment(time)


def test_a_time_may_be_now_and_not_earlier() -> None:
    keeper = RealTime(FakeClock(datetime(2030, 1, 1, tzinfo=UTC)), lambda timeout: Rest(START))
    assert keeper.seconds_to("2030-01-01T00:00Z") == 0.0
    with pytest.raises(ValueError, match="it cannot go back"):
        keeper.seconds_to("2029-12-31T23:59Z")
