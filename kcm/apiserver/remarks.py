"""What the checks of a request leave behind besides its response."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Remarks:
    """Warnings for the client, and annotations of the request's line in the audit log."""

    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
