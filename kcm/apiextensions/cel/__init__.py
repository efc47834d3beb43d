"""Validation rules in the Common Expression Language (CEL)."""
