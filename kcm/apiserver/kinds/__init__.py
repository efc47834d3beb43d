"""Kinds of the API that are computed for requests, and never stored."""
