"""Writes of large objects, which child processes make: they would hold up all other requests."""
