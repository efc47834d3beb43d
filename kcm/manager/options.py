"""The manager's options (thin; the flags come next)."""

from __future__ import annotations

import random

from pydantic import BaseModel


class GenericOptions(BaseModel):
    event_ttl: float = 3600.0
    controller_modules: tuple[str, ...] = ()
    min_resync_period: float = 43200.0


class ManagerOptions(BaseModel):
    generic: GenericOptions = GenericOptions()

    @classmethod
    def load(cls) -> ManagerOptions:
        return cls()

    def resync_period(self) -> float:
        return self.generic.min_resync_period * (1 + random.random())
