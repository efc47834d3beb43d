"""Namespace: deletes the content of a deleted namespace, and then its finalizer `kubernetes`.

Pods are deleted first, and everything else only when they are gone, so that no object that protects
them (a NetworkPolicy, a quota) disappears before they do. Events are deleted last. Conditions of
the namespace report what is left.

Source: pkg/controller/namespace/namespace_controller.go and
pkg/controller/namespace/deletion/namespaced_resources_deleter.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from pydantic import Field

from kcm import errors
from kcm.api.core_v1 import Namespace, NamespaceCondition, Pod
from kcm.api.scheme import Kinds, Resource
from kcm.sdk import (
    Change,
    Controller,
    DeleteCollection,
    Options,
    Outcome,
    Patch,
    Plan,
    RequireDeleting,
    Step,
    UpdateStatus,
    View,
    Watch,
    own_key,
)
from kcm.store.writes.collections import CollectionDeletion

FINALIZER = "kubernetes"  # the finalizer in spec.finalizers that this controller removes
NOTHING: Mapping[str, str] = MappingProxyType({})
RETRY = 2.0  # seconds until the next attempt while objects wait for finalizers
LONGEST_RETRY = 15.0  # seconds, as upstream estimates for finalizers


class NamespaceOptions(Options):
    """The options of the namespace controller."""

    concurrent_namespace_syncs: int = Field(
        default=10,
        ge=1,
        description="The number of namespace objects that are allowed to sync concurrently. "
        "Larger number = more responsive namespace termination, but more CPU load",
    )


class NamespaceController(Controller):
    """Deletes the content of terminating namespaces. A key is a namespace."""

    name = "namespace-controller"
    short_name = "namespace"
    options_type = NamespaceOptions
    options: NamespaceOptions
    needs_kinds = True  # an object of a kind that is new would be left behind

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Namespace, own_key), Watch(Pod, terminating_namespace_of))

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_namespace_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        namespace = view.lister(Namespace).find(key)
        if namespace is None or not namespace.deleting:
            return Plan()
        if FINALIZER not in (namespace.spec.finalizers or ()):
            return Plan()  # only the finalizers of others are left
        pods = Pod.resource
        others = [resources for resources in _list_namespaced(view.scheme) if resources is not pods]

        # While it is not known whether a group has objects here, the namespace stays.
        failed = view.scheme.undiscovered

        def rest(outcome: Outcome) -> Plan:
            if not outcome.deletions:  # it is gone already, and the cache is behind
                return Plan()
            if not outcome.deletions[0].clean:
                return _wait_for_remaining(namespace, outcome.deletions, failed, view.now)
            return Plan(_collections(others, key), plan_after=end)

        def end(outcome: Outcome) -> Plan:
            if failed or any(not deletion.clean for deletion in outcome.deletions):
                return _wait_for_remaining(namespace, outcome.deletions, failed, view.now)
            done = Plan().then(Patch(namespace, _remove_finalizer, finalize=True))
            # The content is gone, but finalizers of others may keep the namespace.
            return Plan(
                status_after=_status(namespace, conditions(outcome.deletions), view.now),
                plan_after=lambda _: done,
            )

        return Plan([RequireDeleting(namespace), *_collections([pods], key)], plan_after=rest)


def terminating_namespace_of(change: Change, view: View) -> Iterable[str]:
    """Returns the namespace of a deleted pod if that namespace is terminating."""
    if change.new is not None:
        return ()
    namespace = view.lister(Namespace).find(change.object.namespace or "")
    return (namespace.key,) if namespace is not None and namespace.deleting else ()


def _list_namespaced(kinds: Kinds) -> list[Resource]:
    """Returns all namespaced kinds, Events last, since deleting other objects creates Events."""
    resources = [resource for resource in kinds.resources() if resource.namespaced]
    return sorted(resources, key=lambda resource: resource.name == "events")


def _collections(resources: Iterable[Resource], namespace: str) -> list[Step]:
    return [DeleteCollection(resource, namespace) for resource in resources]


def _remove_finalizer(obj: Namespace) -> Namespace:
    left = [name for name in obj.spec.finalizers or () if name != FINALIZER]
    return obj.with_spec(obj.spec.replace(finalizers=left or None))


# --- what is left


def _wait_for_remaining(
    namespace: Namespace,
    deletions: Sequence[CollectionDeletion],
    failed: Mapping[str, str],
    now: datetime,
) -> Plan:
    grace = max(remaining.grace for remaining in deletions)
    held = any(remaining.finalizers for remaining in deletions)
    estimate = grace / 2 + 1 if grace else RETRY if held else 0
    return Plan(
        status_after=_status(namespace, conditions(deletions, failed), now),
        requeue_after=min(estimate, LONGEST_RETRY) if estimate else None,
        error=None if estimate else _NotEmptyError(f"{namespace.name} is not empty yet"),
    )


class _NotEmptyError(errors.KcmError):
    """Raised when objects are left that have neither a finalizer nor a grace period.

    Their deletion was refused, they were created after the collection was deleted, or the kinds of
    a group are not known.
    """


def _status(
    namespace: Namespace, conditions: Sequence[NamespaceCondition], now: datetime
) -> Callable[[Outcome], UpdateStatus | None]:
    """Returns a function that returns the status update, or None if nothing changes.

    The conditions keep their order. The phase is set as well, since a namespace may have been
    deleted before deletion set the phase.
    """
    old = {old_condition.type: old_condition for old_condition in namespace.status.conditions or ()}
    new = {c.type: _keep_time(old.get(c.type), c, now) for c in conditions}
    status = namespace.status.replace(phase="Terminating", conditions=list((old | new).values()))
    update = None if status == namespace.status else namespace.with_status(status)
    return lambda _: UpdateStatus(update, namespace) if update is not None else None


def _keep_time(
    old: NamespaceCondition | None, new: NamespaceCondition, now: datetime
) -> NamespaceCondition:
    since = old.last_transition_time if old is not None and old.status == new.status else now
    return new.replace(last_transition_time=since)


def conditions(
    deletions: Sequence[CollectionDeletion], undiscovered: Mapping[str, str] = NOTHING
) -> list[NamespaceCondition]:
    """Returns upstream's five conditions, about kinds that are not known, failed deletions and the
    content that is left.
    """
    left = sorted(
        f"{kind.resource.plural}.{kind.resource.group} has {kind.remaining} resource instances"
        for kind in deletions
        if kind.remaining
    )
    finalizers = sum((Counter(kind.finalizers) for kind in deletions), Counter[str]())
    holding = sorted(f"{name} in {many} resource instances" for name, many in finalizers.items())
    failed = sorted(str(kind.error) for kind in deletions if kind.error is not None)
    unknown = [f"{where}: {why}" for where, why in sorted(undiscovered.items())]
    return [
        _report_causes(unknown, "NamespaceDeletionDiscoveryFailure", "DiscoveryFailed",
              f"Discovery failed for some groups, {len(unknown)} failing: "
              "unable to retrieve the complete list of server APIs: ")
        or _fine("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered",
              "All resources successfully discovered"),
        _fine("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
              "All legacy kube types successfully parsed"),
        _report_causes(failed, "NamespaceDeletionContentFailure", "ContentDeletionFailed",
              f"Failed to delete all resource types, {len(failed)} remaining: ")
        or _fine("NamespaceDeletionContentFailure", "ContentDeleted",
                 "All content successfully deleted, may be waiting on finalization"),
        _report_causes(left, "NamespaceContentRemaining", "SomeResourcesRemain",
              "Some resources are remaining: ")
        or _fine("NamespaceContentRemaining", "ContentRemoved",
                 "All content successfully removed"),
        _report_causes(holding, "NamespaceFinalizersRemaining", "SomeFinalizersRemain",
              "Some content in the namespace has finalizers remaining: ")
        or _fine("NamespaceFinalizersRemaining", "ContentHasNoFinalizers",
                 "All content-preserving finalizers finished"),
    ]  # fmt: skip


def _fine(type_: str, reason: str, message: str) -> NamespaceCondition:
    return NamespaceCondition(type=type_, status="False", reason=reason, message=message)


def _report_causes(
    causes: Sequence[str], type_: str, reason: str, message: str
) -> NamespaceCondition | None:
    if not causes:
        return None
    text = message + ", ".join(causes)
    return NamespaceCondition(type=type_, status="True", reason=reason, message=text)
