"""Kinds: `BUILT_IN` has those of every store, a `Scheme` those of one store.

`builtin` is the table of built-in kinds; `kcm.apiextensions.registration` adds custom kinds to a
scheme by their definitions.
"""

from __future__ import annotations

from kcm.api.scheme.builtin import BUILT_IN, build_schemas, kind
from kcm.api.scheme.kinds import Kinds
from kcm.api.scheme.scheme import Scheme
from kcm.apimachinery.meta_v1 import Conversion, Resource, ScalePaths

__all__ = [
    "BUILT_IN",
    "Conversion",
    "Kinds",
    "Resource",
    "ScalePaths",
    "Scheme",
    "build_schemas",
    "kind",
]
