"""The even spread of jitter."""

from __future__ import annotations

import zlib


def spread(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts only, so that a restart draws it again."""
    return zlib.crc32("/".join(map(str, parts)).encode()) / 2**32
