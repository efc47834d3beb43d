"""Measures the REST API against an app with constant responses on the same HTTP server."""
