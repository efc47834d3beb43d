"""Validation of the kinds of core/v1 besides pods, and of other small kinds."""
