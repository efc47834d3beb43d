"""Writes: what one carries, how it reaches Redis, and how it ended."""
