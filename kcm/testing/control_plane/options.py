"""What a control plane consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kcm import errors


@dataclass(frozen=True)
class PlaneOptions:
    """What a control plane consists of; see `ControlPlane`."""

    controllers: Sequence[str] = ("*",)
    nodes: int = 1
    config: Mapping[str, Any] | None = None
    flags: Sequence[str] = ()
    seed: int | None = None

    def __post_init__(self) -> None:
        """Raises ConfigurationError for what is no such thing."""
        for name in ("controllers", "flags"):
            if isinstance(getattr(self, name), str):
                raise errors.ConfigurationError(
                    f'{name} are several: write {name}=["{getattr(self, name)}"]'
                )
        if not isinstance(self.nodes, int) or self.nodes < 0:
            raise errors.ConfigurationError(f"nodes={self.nodes} is no number: use 0 or more")
        if not isinstance(self.seed, int | None):
            raise errors.ConfigurationError(f"seed={self.seed} is no integer")
