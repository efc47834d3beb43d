"""Finds the owners that a change of a dependent affects, and returns their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import structlog

from kcm import errors
from kcm.api.ownership import controller_of
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector
from kcm.reconcile.contract import Change, KeyFunction, View

SelectorOf = Callable[[Any], Selector | None]
log = structlog.get_logger("kcm.reconcile")


def selector_of(owner: Any) -> Selector | None:
    """Returns the selector in an owner's spec.

    For an invalid selector it logs an error and returns None, since a retry would not help. The
    selector of a ReplicationController is a plain map of labels.
    """
    selector = owner.spec.selector
    if isinstance(selector, dict):
        selector = LabelSelector(match_labels=selector)
    try:
        return Selector.from_label_selector(selector)
    except errors.BadRequest as error:
        log.error("the selector is invalid", kind=owner.kind, key=owner.key, error=str(error))
        return None


def owner_keys(owner: type[KubeObject], selector_of: SelectorOf = selector_of) -> KeyFunction:
    """Returns a function that returns the keys of the owners that a change affects.

    These are the key of the dependent's controller of this kind, that of its former controller, and
    for an orphan the keys of all owners whose selector matches it. `selector_of` returns the
    selector of an owner, or None if it selects nothing.
    """
    kind = owner.resource.kind

    def keys(change: Change, view: View) -> Iterable[str]:
        old, new = change.old, change.new
        if new is None or old is None:
            yield from find_owners(change.object, view, orphans_too=new is not None)
            return
        if old.metadata.resource_version == new.metadata.resource_version:
            return  # a resync
        before, now = controller_of(old), controller_of(new)
        if before is not None and before != now:
            yield from find_owners(old, view)
        relabelled = old.metadata.labels != new.metadata.labels
        yield from find_owners(new, view, orphans_too=relabelled or before != now)

    def find_owners(obj: KubeObject, view: View, *, orphans_too: bool = False) -> Iterable[str]:
        reference = controller_of(obj)
        owners = view.lister(owner)
        if reference is not None:
            if reference.kind != kind:
                return
            controller = owners.find(f"{obj.namespace}/{reference.name}")
            if controller is not None and controller.uid == reference.uid:
                yield controller.key
        elif orphans_too and not obj.deleting:
            yield from _matching_keys(obj, owners.list(obj.namespace), selector_of)

    return keys


def _matching_keys(
    orphan: KubeObject, owners: Iterable[KubeObject], selector_of: SelectorOf
) -> Iterator[str]:
    for owner in owners:
        selector = selector_of(owner)
        if selector is not None and not selector.empty and selector.matches(orphan.labels):
            yield owner.key
