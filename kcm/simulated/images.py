"""Simulated images: pulled without a registry, or not, as scripted."""

from __future__ import annotations

import hashlib

NOT_FOUND = "failed to pull and unpack image: not found (simulated)"
TOOK = "100ms"  # that a pull is said to take


def size_of(image: str) -> int:
    """Bytes; the same for equal images."""
    return 10_000_000 + int(hashlib.sha256(image.encode()).hexdigest()[:6], 16)
