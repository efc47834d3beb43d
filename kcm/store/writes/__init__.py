"""Writes: their content, how they are sent to Redis, and their results."""
