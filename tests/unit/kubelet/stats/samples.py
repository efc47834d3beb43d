"""Made-up usage of a node and its pods."""

from __future__ import annotations

from datetime import UTC, datetime

from kcm.kubelet.stats.machine import MachineUsage
from kcm.kubelet.stats.provider import ContainerUsage, DiskUsage, PodStats, StatsSummary

AT = datetime(2026, 1, 1, tzinfo=UTC)
MACHINE = MachineUsage(AT, 7 * 10**9, 1000, 400, 5000, 3000, 100, 60, 20, 1000, AT.timestamp())
MAIN = ContainerUsage("main", "1", AT, 2 * 10**9, 0.25, 2048, 4096, 3, AT, 10)
SIDE = ContainerUsage("side", "2", AT, 10**9, 0.5, 1024, 1024, 1, AT, 5)
POD = PodStats("uid-1", "web", "default", (MAIN, SIDE), DiskUsage(100, 4, {"data": 100}))
SUMMARY = StatsSummary(MACHINE, 1.5, (POD, PodStats("uid-2", "idle", "default")), 10.0)
