"""The clock by which the scripts in Redis go."""

from __future__ import annotations

from kcm.redisio import RedisIO


def step(io: RedisIO, seconds: float) -> None:
    """Steps the clock of the scripts that this connection calls."""
    io.clock_offset_ms += round(seconds * 1000)
