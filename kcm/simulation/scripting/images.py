"""Simulated images. There is no registry: scripts decide whether an image can be pulled."""

from __future__ import annotations

import hashlib

NOT_FOUND = "failed to pull and unpack image: not found (simulated)"
TOOK = "100ms"  # how long a pull took, according to its Event


def size_of(image: str) -> int:
    """Returns the size of an image in bytes, which depends on its name."""
    return 10_000_000 + int(hashlib.sha256(image.encode()).hexdigest()[:6], 16)
