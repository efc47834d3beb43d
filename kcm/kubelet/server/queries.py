"""Parameters of a request to the kubelet's server."""

from __future__ import annotations

from collections.abc import Mapping

_TRUE = ("1", "true", "True", "TRUE", "t", "T")


def is_true(query: Mapping[str, str], name: str) -> bool:
    """Reports whether a switch is on; any text that is not one of Go's words for it means off."""
    return query.get(name) in _TRUE
