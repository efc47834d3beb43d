"""A server in this process's memory, on which the real `Store` runs, for tests (design 0050)."""

from kcm.store.memory.io import MemoryIO

__all__ = ["MemoryIO"]
