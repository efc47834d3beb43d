"""Graceful shutdown of a node: its pods end in order, and say why."""
