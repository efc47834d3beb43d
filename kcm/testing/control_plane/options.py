"""What a control plane consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PlaneOptions:
    """What a control plane consists of; see `ControlPlane`."""

    controllers: Sequence[str] = ("*",)
    nodes: int = 1
    config: Mapping[str, Any] | None = None
    flags: Sequence[str] = ()
    seed: int | None = None
