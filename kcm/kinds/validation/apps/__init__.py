"""Validation of the kinds of apps/v1, and of ReplicationControllers."""
