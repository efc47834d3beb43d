"""The garbage collector: `controller` is its entry, and the rest are its pure helpers."""

from kcm.controllers.garbagecollector.controller import GarbageCollector, GarbageCollectorOptions

__all__ = ["GarbageCollector", "GarbageCollectorOptions"]
