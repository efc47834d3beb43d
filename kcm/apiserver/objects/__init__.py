"""Verbs on objects: get, list, watch, create, update, patch, apply, delete, and subresources."""
