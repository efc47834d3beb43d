"""Graceful shutdown of a node, which terminates its pods by priority."""
