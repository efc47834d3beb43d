"""Controller references: who manages which objects, and how that changes.

A controller manages the objects that bear its reference and match its selector.
`claim` says which these are and what must be written so: orphans that match are
adopted, own objects that no longer match are released, others' are left alone.
It is pure; a guard on every adoption makes the live check that upstream calls
RecheckDeletionTimestamp part of the write, so a controller that was deleted or
replaced in the meantime adopts nothing.

Source: pkg/controller/controller_ref_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from kcm.api import scheme
from kcm.api.ownership import controller_of, new_controller_ref
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.reconcile.contract import BY_CONTROLLER, ORPHANS, View, controller_key
from kcm.reconcile.plan import Patch
from kcm.store import Guard

T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True)
class Claim(Generic[T]):
    """What a controller manages once `writes` have been carried out."""

    objects: list[T]
    writes: list[Patch]


def controlled_by(owner: KubeObject, model: type[T], view: View) -> Sequence[T]:
    """What `owner` manages of a kind, in its own namespace."""
    key = controller_key(owner.namespace, owner.uid)
    return view.lister(model).by_index(BY_CONTROLLER, key)


def own_and_orphans(owner: KubeObject, model: type[T], view: View) -> list[T]:
    """What `owner` may claim of a kind: its own, and what nobody manages in its namespace."""
    orphans = view.lister(model).by_index(ORPHANS, owner.namespace)
    return [*controlled_by(owner, model, view), *orphans]


def claim(
    owner: KubeObject,
    selector: Selector,
    objects: Iterable[T],
    adapt: Callable[[KubeObject], KubeObject] | None = None,
) -> Claim[T]:
    """Which of `objects` (its own and orphans) `owner` manages, and the writes that make it so.

    An owner that is being deleted neither adopts nor releases. `adapt` is what an adoption
    changes besides the reference.
    """
    found: Claim[T] = Claim([], [])
    may_write = not owner.deleting
    labels, references = None, None  # of the object before
    reference, matches = None, selector.matches(None)
    for obj in objects:
        metadata = obj.metadata
        # Caches keep equal ones once, and of a set's objects most are equal.
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
                found.objects.append(obj)
            elif may_write:
                found.writes.append(release(owner, obj))
        elif matches and may_write and not obj.deleting:
            found.objects.append(obj)
            found.writes.append(adopt(owner, obj, adapt))
    return found


def adopt(
    owner: KubeObject, obj: KubeObject, adapt: Callable[[KubeObject], KubeObject] | None = None
) -> Patch:
    """Make `owner` the controller of an orphan, if it still exists and stays."""
    guard = Guard.exists(scheme.resource_of(owner), owner.key, owner.uid)
    change = partial(_with_owner, new_controller_ref(owner), adapt)
    return Patch(obj, change, (guard,))


def release(owner: KubeObject, obj: KubeObject) -> Patch:
    """Take `owner` out of the owners of an object."""
    return Patch(obj, without_owners(owner.uid))


def without_owners(*uids: str) -> Callable[[KubeObject], KubeObject]:
    """A change that removes the references to these owners."""
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
