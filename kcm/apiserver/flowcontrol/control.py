"""`FlowControl`: priority and fairness of one API server, as the cluster's objects say.

Source: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go and
pkg/server/filters/priority-and-fairness.go, Kubernetes 1.36. Departures are in design 0065.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry

from kcm.api.flowcontrol_v1 import FlowSchema, PriorityLevelConfiguration
from kcm.api.priority_levels import (
    MANDATORY_LEVELS,
    SUGGESTED_LEVELS,
    SUGGESTED_SCHEMAS,
)
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.flowcontrol.level import PriorityLevel
from kcm.apiserver.flowcontrol.metrics import FlowMetrics, LevelMetrics
from kcm.apiserver.flowcontrol.schemas import Flow, FlowSchemas
from kcm.apiserver.flowcontrol.shares import divide, lend, level_shares
from kcm.apiserver.flowcontrol.turns import Turns

LENDING_PERIOD = 10.0  # seconds between adjustments of what levels borrow
EXEMPT_WEIGHT = 30  # of exempt levels in the event loop: the shares of the level `system`
_UNLIMITED = 1_000_000  # seats


class FlowControl:
    """Says which requests are served, and when. Only the event loop's thread may use it."""

    def __init__(self, caches: Caches, seats: int, registry: CollectorRegistry) -> None:
        """`seats` are what all limited levels have together; 0 stands for as many as they want."""
        self._stored_schemas = caches.cache(FlowSchema.resource)
        self._stored_levels = caches.cache(PriorityLevelConfiguration.resource)
        self._seen = (-1, -1)  # the generations of the caches
        self._seats = seats or _UNLIMITED
        self._metrics = FlowMetrics(registry)
        self._levels: dict[str, PriorityLevel] = {}
        self._weights: dict[str, int] = {}
        self.turns = Turns(lambda level: self._weights.get(level, 1))
        self._next_lending = -math.inf
        LevelMetrics(self._levels, lambda: self.turns.waiting, registry)

    def classify(self, user: User, asked: Attributes) -> Flow:
        """Returns the flow to which a request belongs."""
        seen = (self._stored_schemas.generation, self._stored_levels.generation)
        if seen != self._seen:
            self._configure()
            self._seen = seen
        return self._schemas.find(user, asked)

    def find_level(self, flow: Flow) -> PriorityLevel:
        """Returns the priority level of a flow, which gives out seats."""
        now = asyncio.get_running_loop().time()
        if now >= self._next_lending:
            self._lend(now)
        return self._levels[flow.level]

    def _configure(self) -> None:
        """Takes over the cluster's FlowSchemas and PriorityLevelConfigurations.

        Until they are loaded, those of a new cluster hold.
        """
        schemas: Iterable[FlowSchema] = SUGGESTED_SCHEMAS
        levels: Iterable[PriorityLevelConfiguration] = SUGGESTED_LEVELS
        if min(self._stored_schemas.position, self._stored_levels.position) >= 0:
            schemas = [entry.obj for entry in self._stored_schemas.entries()]
            levels = [entry.obj for entry in self._stored_levels.entries()]
        by_name = {**MANDATORY_LEVELS, **{level.name: level for level in levels}}
        self._schemas = FlowSchemas(schemas, by_name)
        self._set_levels(list(by_name.values()))

    def _set_levels(self, levels: Sequence[PriorityLevelConfiguration]) -> None:
        now = asyncio.get_running_loop().time()
        limits = divide(levels, self._seats)
        for level in levels:
            if level.name in self._levels:
                self._levels[level.name].configure(level, limits[level.name])
            else:
                self._levels[level.name] = PriorityLevel(
                    level, limits[level.name], self._metrics, now
                )
            exempt = level.spec.limited is None
            self._weights[level.name] = EXEMPT_WEIGHT if exempt else max(1, level_shares(level))
        for gone in self._levels.keys() - limits.keys():  # requests in it keep it until they end
            del self._levels[gone], self._weights[gone]
        self._next_lending = -math.inf

    def _lend(self, now: float) -> None:
        """Gives each level the seats of the next period, by what it could have used."""
        self._next_lending = now + LENDING_PERIOD
        levels = list(self._levels.values())
        for level in levels:
            level.demand.end_period(now)
        limited = [level for level in levels if not level.exempt]
        seats = sum(level.limits.nominal for level in levels)
        exempt = sum(max(one.limits.lower, one.demand.high) for one in levels if one.exempt)
        lent = lend(seats, exempt, [(level.limits, level.demand) for level in limited])
        for level, current in zip(limited, lent, strict=True):
            level.set_current(current)
