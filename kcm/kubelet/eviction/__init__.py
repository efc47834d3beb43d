"""Eviction by node pressure: evicts pods before the node runs out of memory, disk or PIDs."""
