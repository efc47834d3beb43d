"""Strategies: what differs by kind when objects are created, updated and deleted."""
