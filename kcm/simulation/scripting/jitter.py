"""Random numbers that are the same after a restart of the simulator."""

from __future__ import annotations

import zlib


def spread(*parts: object) -> float:
    """Returns a number from 0 to 1 (exclusive) that depends only on the parts.

    The numbers of different parts are evenly distributed.
    """
    return zlib.crc32("/".join(map(str, parts)).encode()) / 2**32
