"""Parses query parameters of requests to the kubelet's server."""

from __future__ import annotations

from collections.abc import Mapping

_TRUE = ("1", "true", "True", "TRUE", "t", "T")


def is_true(query: Mapping[str, str], name: str) -> bool:
    """Reports whether a parameter is one of the words that Go parses as true."""
    return query.get(name) in _TRUE
