"""Asks conversion webhooks for custom objects in another version."""
