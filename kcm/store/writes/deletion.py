"""The rules of delete, as pure functions on objects.

Source: staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject, shift_time
from kcm.store.namespaces import check_deletable
from kcm.store.options import (
    FOREGROUND_FINALIZER,
    ORPHAN_FINALIZER,
    DeleteOptions,
    PropagationPolicy,
)
from kcm.store.rules import has_spec_finalizers
from kcm.store.strategies.kinds import strategy_of


def prepare_delete(
    old: KubeObject, resource: Resource, options: DeleteOptions, now: datetime
) -> tuple[Literal["delete", "update"], KubeObject]:
    """Returns what a delete does now: remove the object ("delete") or mark it as deleted
    ("update").

    A marked object has a deletion timestamp and waits for its finalizers and grace period. The last
    state of one that is removed is that before, except for kinds with grace periods.
    `("update", old)` means that nothing changes. Raises: Conflict for a failed precondition,
    Forbidden for a namespace of the system.
    """
    check_deletable(resource, old.name or "")
    check_preconditions(old, resource, options)
    grace = _grace(old, resource, options.grace_period_seconds)
    if grace is None:
        return "update", old
    finalizers = _finalizers(old, _policy(old, resource, options))
    marked = _mark(old, finalizers, grace, now)
    if not old.deleting:
        marked = strategy_of(resource).for_delete(marked, now)
        finalizers = marked.metadata.finalizers or []
    if finalizers or grace or has_spec_finalizers(old):
        return "update", old if marked == old else marked
    return "delete", marked if strategy_of(resource).marks_at_once else old


def _grace(old: KubeObject, resource: Resource, requested: int | None) -> int | None:
    """Returns the grace period in seconds, None if that of an earlier delete stays."""
    if not old.deleting:
        return strategy_of(resource).grace_period(old, requested)
    before = old.metadata.deletion_grace_period_seconds or 0
    if not before:
        return 0
    asked = 1 if requested is not None and requested < 0 else requested
    return None if asked is None or asked >= before else asked


def _mark(obj: KubeObject, finalizers: Sequence[str], grace: int, now: datetime) -> KubeObject:
    """Returns the object with these finalizers and a deletion timestamp."""
    meta = obj.metadata
    before = meta.deletion_grace_period_seconds or 0
    changes: dict[str, Any] = {}
    if finalizers != (meta.finalizers or []):
        changes["finalizers"] = finalizers or None
    if meta.deletion_timestamp is None:
        changes["deletion_timestamp"] = shift_time(now, grace).replace(microsecond=0)
        changes["deletion_grace_period_seconds"] = grace
        changes["generation"] = meta.generation + 1 if meta.generation else meta.generation
    elif grace < before:
        # A second delete may only shorten the grace period, which counts from the first delete.
        # The deletion timestamp is never set to a time in the past.
        end = shift_time(meta.deletion_timestamp, grace - before)
        if end < now:
            end, grace = now.replace(microsecond=0), min(grace, 1)
        changes["deletion_timestamp"] = end
        changes["deletion_grace_period_seconds"] = grace
    return obj.with_metadata(**changes) if changes else obj


def _policy(
    old: KubeObject, resource: Resource, options: DeleteOptions
) -> PropagationPolicy | None:
    """Returns the requested propagation policy, or the default of the kind.

    Returns None if the finalizers of the object stay as they are.
    """
    asked = options.propagation_policy
    decided = {FOREGROUND_FINALIZER, ORPHAN_FINALIZER} & set(old.metadata.finalizers or ())
    if asked is None and not decided and strategy_of(resource).orphans_by_default:
        return "Orphan"
    return asked


def _finalizers(obj: KubeObject, policy: PropagationPolicy | None) -> list[str]:
    """Returns the object's finalizers with those that the policy needs."""
    kept = list(obj.metadata.finalizers or ())
    if policy is None:
        return kept
    kept = [name for name in kept if name not in (FOREGROUND_FINALIZER, ORPHAN_FINALIZER)]
    wanted = {"Foreground": [FOREGROUND_FINALIZER], "Orphan": [ORPHAN_FINALIZER]}
    return kept + wanted.get(policy, [])


def check_preconditions(old: KubeObject, resource: Resource, options: DeleteOptions) -> None:
    """Raises Conflict if the object's uid or resourceVersion is not that of the options."""
    name, version = old.name or "", old.metadata.resource_version
    if options.uid and options.uid != old.uid:
        raise errors.Conflict.of(
            resource.qualified_kind,
            name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({old.uid}). The object might have been deleted and then recreated",
        )
    if options.resource_version and options.resource_version != version:
        raise errors.Conflict.of(
            resource.qualified_kind,
            name,
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match "
            f"the ResourceVersion in record ({version}). The object might have been modified",
        )
