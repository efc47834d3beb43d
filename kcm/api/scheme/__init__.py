"""The scheme: the registry of all kinds, one for each process.

`builtin` has the table of built-in kinds; `kcm.apiextensions.known` adds the custom ones.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable

from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme.builtin import KINDS, OTHER_VERSIONS, kind
from kcm.api.scheme.registry import Scheme
from kcm.apimachinery.meta_v1 import Conversion, Resource, ScalePaths

__all__ = [
    "Conversion",
    "Resource",
    "ScalePaths",
    "Scheme",
    "add_version",
    "at",
    "by_gvk",
    "by_name",
    "generation",
    "kind",
    "lookup",
    "register",
    "replace_versions",
    "resources",
    "served",
    "versions",
]

_SCHEME = Scheme(KINDS)
for _version in OTHER_VERSIONS:
    _SCHEME.add_version(_version)

generation = _SCHEME.generation
register = _SCHEME.register
add_version = _SCHEME.add_version
replace_versions = _SCHEME.replace_versions
resources = _SCHEME.resources
served = _SCHEME.served
at = _SCHEME.at
versions = _SCHEME.versions
by_gvk = _SCHEME.by_gvk
by_name = _SCHEME.by_name
lookup = _SCHEME.lookup


def _reduce(resource: Resource) -> tuple[Callable[[str, str], Resource], tuple[str, str]]:
    """Pickles a resource as its apiVersion and kind.

    The process that unpickles it gets its own registered resource.
    """
    return _unpickle, (resource.api_version, resource.kind)


def _unpickle(api_version: str, kind: str) -> Resource:
    return by_gvk(api_version, kind)


for _class in (Resource, CustomResource):
    copyreg.pickle(_class, _reduce)
