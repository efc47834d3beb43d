"""Namespace: empties a deleted namespace, says what stays, lets it go.

Pods go first, and everything else only when they are gone, so that nothing that
guards them (a NetworkPolicy, a quota) disappears before they do. Events go last.

Source: pkg/controller/namespace/namespace_controller.go and
pkg/controller/namespace/deletion/namespaced_resources_deleter.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from pydantic import Field

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import Namespace, NamespaceCondition, Pod
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.contract import Change, Controller, Options, View, Watch, own_key
from kcm.reconcile.plan import DeleteCollection, Outcome, Patch, Plan, UpdateStatus
from kcm.store.writes.sweeping import Swept

FINALIZER = "kubernetes"  # the part of spec.finalizers that is ours
RETRY = 2.0  # seconds until objects that wait for finalizers are looked at again
LONGEST_RETRY = 15.0  # seconds, as upstream's estimate for finalizers


class NamespaceOptions(Options):
    """Tunables of the namespace controller."""

    concurrent_namespace_syncs: int = Field(
        default=10,
        ge=1,
        description="The number of namespace objects that are allowed to sync concurrently. "
        "Larger number = more responsive namespace termination, but more CPU load",
    )


class NamespaceController(Controller):
    """One key per namespace."""

    name = "namespace-controller"
    short_name = "namespace"
    options_type = NamespaceOptions
    options: NamespaceOptions

    def watches(self) -> tuple[Watch, ...]:
        return (Watch(Namespace, own_key), Watch(Pod, of_a_terminating_namespace))

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_namespace_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        namespace = view.lister(Namespace).find(key)
        if namespace is None or not namespace.deleting:
            return Plan()
        if FINALIZER not in (namespace.spec.finalizers or ()):
            return Plan()  # others still have to finish with it
        pods = scheme.resource_of(Pod)
        others = [found for found in _inside() if found is not pods]

        def rest(outcome: Outcome) -> Plan:
            if not outcome.swept[0].clean:
                return _waiting(namespace, outcome.swept, view.now)
            return Plan(collections=_collections(others, key), plan_after=end)

        def end(outcome: Outcome) -> Plan:
            if any(not swept.clean for swept in outcome.swept):
                return _waiting(namespace, outcome.swept, view.now)
            done = Plan().then(Patch(namespace, _finalized))
            # What stood in the way before does so no longer; others may still have to finish.
            return Plan(
                status_after=_status(namespace, outcome.swept, view.now), plan_after=lambda _: done
            )

        return Plan(collections=_collections([pods], key), plan_after=rest)


def of_a_terminating_namespace(change: Change, view: View) -> Iterable[str]:
    """The namespace of a pod that went, if it is emptied."""
    if change.new is not None:
        return ()
    namespace = view.lister(Namespace).find(change.object.namespace or "")
    return (namespace.key,) if namespace is not None and namespace.deleting else ()


def _inside() -> list[Resource]:
    """Every kind that lives in namespaces, Events last: deleting the others makes some."""
    found = [resource for resource in scheme.resources() if resource.namespaced]
    return sorted(found, key=lambda resource: resource.name == "events")


def _collections(resources: Iterable[Resource], namespace: str) -> list[DeleteCollection]:
    return [DeleteCollection(resource, namespace) for resource in resources]


def _finalized(obj: KubeObject) -> KubeObject:
    assert isinstance(obj, Namespace)
    left = [name for name in obj.spec.finalizers or () if name != FINALIZER]
    return obj.with_spec(obj.spec.replace(finalizers=left or None))


# --- what stands in the way


def _waiting(namespace: Namespace, swept: Sequence[Swept], now: datetime) -> Plan:
    grace = max(found.grace for found in swept)
    held = any(found.finalizers for found in swept)
    estimate = grace / 2 + 1 if grace else RETRY if held else 0
    return Plan(
        status_after=_status(namespace, swept, now),
        requeue_after=min(estimate, LONGEST_RETRY) if estimate else None,
        error=None if estimate else _NotEmptyError(f"{namespace.name} is not empty yet"),
    )


class _NotEmptyError(errors.KcmError):
    """Objects are left that nothing holds back: they were refused, or came in between."""


def _status(
    namespace: Namespace, swept: Sequence[Swept], now: datetime
) -> Callable[[Outcome], UpdateStatus | None]:
    """The conditions, each in its old place. The phase, too: a namespace may have been deleted
    before its deletion set it."""
    old = {found.type: found for found in namespace.status.conditions or ()}
    new = {c.type: _moved(old.get(c.type), c, now) for c in conditions(swept)}
    status = namespace.status.replace(phase="Terminating", conditions=list((old | new).values()))
    update = None if status == namespace.status else namespace.with_status(status)
    return lambda _: UpdateStatus(update, namespace) if update is not None else None


def _moved(
    old: NamespaceCondition | None, new: NamespaceCondition, now: datetime
) -> NamespaceCondition:
    since = old.last_transition_time if old is not None and old.status == new.status else now
    return new.replace(last_transition_time=since)


def conditions(swept: Sequence[Swept]) -> list[NamespaceCondition]:
    """Upstream's five conditions: what could not be deleted, and what keeps the rest."""
    left = sorted(
        f"{found.resource.plural}.{found.resource.group} has {found.remaining} resource instances"
        for found in swept
        if found.remaining
    )
    finalizers = sum((Counter(found.finalizers) for found in swept), Counter[str]())
    holding = sorted(f"{name} in {many} resource instances" for name, many in finalizers.items())
    failed = sorted(str(found.error) for found in swept if found.error is not None)
    return [
        _fine("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered",
              "All resources successfully discovered"),
        _fine("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
              "All legacy kube types successfully parsed"),
        _told(failed, "NamespaceDeletionContentFailure", "ContentDeletionFailed",
              f"Failed to delete all resource types, {len(failed)} remaining: ")
        or _fine("NamespaceDeletionContentFailure", "ContentDeleted",
                 "All content successfully deleted, may be waiting on finalization"),
        _told(left, "NamespaceContentRemaining", "SomeResourcesRemain",
              "Some resources are remaining: ")
        or _fine("NamespaceContentRemaining", "ContentRemoved",
                 "All content successfully removed"),
        _told(holding, "NamespaceFinalizersRemaining", "SomeFinalizersRemain",
              "Some content in the namespace has finalizers remaining: ")
        or _fine("NamespaceFinalizersRemaining", "ContentHasNoFinalizers",
                 "All content-preserving finalizers finished"),
    ]  # fmt: skip


def _fine(type_: str, reason: str, message: str) -> NamespaceCondition:
    return NamespaceCondition(type=type_, status="False", reason=reason, message=message)


def _told(
    causes: Sequence[str], type_: str, reason: str, message: str
) -> NamespaceCondition | None:
    if not causes:
        return None
    told = message + ", ".join(causes)
    return NamespaceCondition(type=type_, status="True", reason=reason, message=told)
