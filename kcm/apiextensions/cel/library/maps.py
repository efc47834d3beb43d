"""What the macros transformMap and transformMapEntry build their maps with.

The library declares these functions as `cel.@mapInsert` and does not have them. So programs with
the macros are compiled, and their functions replaced by ours, whose names are as long.

Source: ext/comprehensions.go of cel-go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAME = "kcm.@mapInsert"
INSERT, MERGE = "kmapInsert_map_key_value", "kmapInsert_map_map"
_THEIRS = "cel.@mapInsert", "@mapInsert_map_key_value", "@mapInsert_map_map"


def insert(values: Mapping[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    """Returns the map with one more entry. Raises ValueError if it has the key."""
    return merge(values, {key: value})


def merge(values: Mapping[Any, Any], more: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns the entries of both maps. Raises ValueError if a key is in both."""
    for key in more:
        if key in values:
            raise ValueError(f"insert failed: key {key} already exists")
    return {**values, **more}


def replace_functions(serialized: bytes) -> bytes:
    """Returns a serialized program with our functions in place of the library's."""
    for theirs, ours in zip(_THEIRS, (NAME, INSERT, MERGE), strict=True):
        serialized = serialized.replace(theirs.encode(), ours.encode())
    return serialized
