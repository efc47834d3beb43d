"""Validation rules in CEL, the Common Expression Language."""
