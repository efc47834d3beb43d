"""The garbage collector: `controller` is its entry, the rest its pure helpers."""

from kcm.controllers.garbagecollector.controller import GarbageCollector, GarbageCollectorOptions

__all__ = ["GarbageCollector", "GarbageCollectorOptions"]
