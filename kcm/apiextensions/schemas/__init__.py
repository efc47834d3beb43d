"""Checks of the schemas of custom kinds."""
