"""`Known`: how a server is known."""

from __future__ import annotations

import ssl
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """The name that a server's certificate must be for, and what it must be signed by."""

    name: str
    context: ssl.SSLContext
