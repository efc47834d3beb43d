"""The garbage collector is in `controller`; the other modules are its pure helpers."""

from kcm.controllers.garbagecollector.controller import GarbageCollector, GarbageCollectorOptions

__all__ = ["GarbageCollector", "GarbageCollectorOptions"]
