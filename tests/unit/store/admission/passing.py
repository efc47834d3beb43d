"""Passes objects through single plugins."""

from __future__ import annotations

from typing import TypeVar

from kcm.api.admissionregistration_v1 import CREATE, UPDATE
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.admission.plugin import Plugin, Write

T = TypeVar("T", bound=KubeObject)


def create(plugin: Plugin, obj: T) -> T:
    """Returns a new object as the plugin changes it, the same one if it does not handle it."""
    if not plugin.handles(obj.resource.name, "", CREATE):
        return obj
    write = plugin.admit(Write(CREATE, obj.resource, obj))
    plugin.validate(write)
    assert isinstance(write.new, type(obj))
    return write.new


def update(plugin: Plugin, new: T, old: T) -> T:
    """Returns a changed object as the plugin changes it. Raises what the plugin raises."""
    assert plugin.handles(new.resource.name, "", UPDATE)
    write = plugin.admit(Write(UPDATE, new.resource, new, old))
    plugin.validate(write)
    assert isinstance(write.new, type(new))
    return write.new
