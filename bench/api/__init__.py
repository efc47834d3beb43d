"""Measures the REST API against the same HTTP server with an app that answers constants."""
