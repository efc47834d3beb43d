"""Validation of admission policies and webhooks."""
