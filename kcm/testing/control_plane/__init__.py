"""A whole control plane inside the process of a test."""
