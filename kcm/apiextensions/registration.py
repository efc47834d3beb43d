"""Registers the custom kinds of a store in its scheme by their definitions."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.custom.kinds import CustomResource, DefinitionSource
from kcm.api.scheme import Scheme
from kcm.apiextensions.kinds import is_served, resources_of, source_of

log = structlog.get_logger("kcm.api")


def register(scheme: Scheme, definition: CustomResourceDefinition) -> bool:
    """Registers the kind of a definition, or removes it if it is no longer served.

    Returns whether that changed the scheme.
    """
    name = definition.name
    if not is_served(definition):
        return unregister(scheme, name)
    with scheme.lock:
        before = _find_source(scheme, name)
        if before == source_of(definition):
            return False
        try:
            scheme.replace_versions(name, resources_of(definition))
        except ValueError as error:
            log.warning("A custom kind is not served", definition=name, error=str(error))
            return False
        if before is not None:
            scheme.remains.add(before.size)
        return True


def unregister(scheme: Scheme, name: str) -> bool:
    """Removes the kind of a definition by its name. Returns whether it was registered."""
    with scheme.lock:
        before = _find_source(scheme, name)
        if before is None:
            return False
        scheme.replace_versions(name)
        scheme.remains.add(before.size)
        return True


def register_all(scheme: Scheme, definitions: Iterable[CustomResourceDefinition]) -> None:
    """Registers the kinds of these definitions, and removes all other custom kinds."""
    by_name = {definition.name: definition for definition in definitions}
    for name in custom_names(scheme) - by_name.keys():
        unregister(scheme, name)
    for definition in by_name.values():
        register(scheme, definition)


def custom_names(scheme: Scheme) -> frozenset[str]:
    """Returns the names of the custom kinds that are registered."""
    return frozenset(one.name for one in scheme.resources() if isinstance(one, CustomResource))


def _find_source(scheme: Scheme, name: str) -> DefinitionSource | None:
    """Returns what a custom kind was registered from, None if it is not registered."""
    stored = next(iter(scheme.versions(name)), None)
    return stored.source if isinstance(stored, CustomResource) else None
