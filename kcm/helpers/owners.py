"""Finds the owners that a change of a dependent affects, and returns their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import structlog

from kcm import errors
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector, OwnerReference
from kcm.apimachinery.ownership import controller_of, new_controller_ref
from kcm.reconcile.contract import BY_CONTROLLER, ORPHANS, Change, KeyFunction, View, controller_key
from kcm.reconcile.plan import Patch
from kcm.store.writes.guards import Exists

# --- Controller references: which objects a controller manages, and how that changes.
#
# A controller manages the objects that have a controller reference to it and match its selector.
# `claim` returns them, and the writes that are needed: orphans that match are adopted, own objects
# that no longer match are released, and the objects of other controllers are left alone. Each
# adoption has a guard that makes the live check which upstream calls RecheckDeletionTimestamp a
# part of the write, so a controller that was deleted or replaced meanwhile adopts nothing.
#
# Source: pkg/controller/controller_ref_manager.go, Kubernetes 1.33.


T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True)
class Claim(Generic[T]):
    """The objects that a controller manages after `writes`."""

    objects: list[T]
    writes: list[Patch]


def list_controlled(owner: KubeObject, model: type[T], view: View) -> Sequence[T]:
    """Returns the objects of a kind in the owner's namespace that have a controller reference to
    it.
    """
    key = controller_key(owner.namespace, owner.uid)
    return view.lister(model).by_index(BY_CONTROLLER, key)


def own_and_orphans(owner: KubeObject, model: type[T], view: View) -> list[T]:
    """Returns the objects of a kind that `owner` may claim.

    These are its own objects, and the orphans in its namespace.
    """
    orphans = view.lister(model).by_index(ORPHANS, owner.namespace)
    return [*list_controlled(owner, model, view), *orphans]


def claim(
    owner: KubeObject,
    selector: Selector,
    objects: Iterable[T],
    adapt: Callable[[KubeObject], KubeObject] | None = None,
) -> Claim[T]:
    """Returns which of its own objects and orphans `owner` manages, and the necessary writes.

    An owner that is being deleted neither adopts nor releases. `adapt` is a further change that an
    adoption makes.
    """
    claimed: Claim[T] = Claim([], [])
    may_write = not owner.deleting
    labels, references = None, None  # guards the object before the change
    reference, matches = None, selector.matches(None)
    for obj in objects:
        metadata = obj.metadata
        # Caches share equal values, and most objects of a set have equal ones.
        if metadata.owner_references is not references:
            references = metadata.owner_references
            reference = controller_of(obj)
        if metadata.labels is not labels:
            labels = metadata.labels
            matches = selector.matches(labels)
        if reference is not None and reference.uid != owner.uid:
            continue
        if reference is not None:
            if matches:
                claimed.objects.append(obj)
            elif may_write:
                claimed.writes.append(release(owner, obj))
        elif matches and may_write and not obj.deleting:
            claimed.objects.append(obj)
            claimed.writes.append(adopt(owner, obj, adapt))
    return claimed


def adopt(
    owner: KubeObject, obj: KubeObject, adapt: Callable[[KubeObject], KubeObject] | None = None
) -> Patch:
    """Returns the write that makes `owner` the controller of an orphan.

    Its guard fails if `owner` is gone or being deleted. `adapt` is a further change of the orphan.
    """
    guard = Exists(owner.resource.name, owner.key, owner.uid)
    change = partial(_with_owner, new_controller_ref(owner), adapt)
    return Patch(obj, change, (guard,))


def release(owner: KubeObject, obj: KubeObject) -> Patch:
    """Returns the write that removes the owner reference to `owner` from an object."""
    return Patch(obj, without_owners(owner.uid))


def without_owners(*uids: str) -> Callable[[KubeObject], KubeObject]:
    """Returns a function that removes the owner references with these uids from an object."""
    return partial(_without_owners, frozenset(uids))


def _with_owner(
    reference: OwnerReference,
    adapt: Callable[[KubeObject], KubeObject] | None,
    obj: KubeObject,
) -> KubeObject:
    others = [o for o in obj.metadata.owner_references or () if o.uid != reference.uid]
    adopted = obj.with_metadata(owner_references=[*others, reference])
    return adopted if adapt is None else adapt(adopted)


def _without_owners(uids: frozenset[str], obj: KubeObject) -> KubeObject:
    references = obj.metadata.owner_references or []
    kept = [reference for reference in references if reference.uid not in uids]
    return obj if len(kept) == len(references) else obj.with_metadata(owner_references=kept or None)


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
