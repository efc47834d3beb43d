"""Faults that a test asks for, and how the server acts them out."""
