"""ResourceQuota: counts what the objects of a namespace take, where the count may have gone down.

What is created is charged with its own write (`kcm.store.admission.quotas`), so nothing has to be
counted for that. Here a quota is counted anew when it is new or limits something else, when
an object that it limits goes, ends or takes less, and once in a while in any case. A count
is written only if nothing was charged since that it did not see.

Source: pkg/controller/resourcequota/{resource_quota_controller,resource_quota_monitor}.go and
pkg/quota/v1/install/update_filter.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from pydantic import Field

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import (
    PersistentVolumeClaim,
    Pod,
    ResourceQuota,
    ResourceQuotaStatus,
    Service,
)
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.quota import Evaluator, evaluator_of, is_tracked, used_by
from kcm.reconcile.contract import Change, Controller, Options, Tick, View, Watch
from kcm.reconcile.plan import Outcome, Patch, Plan
from kcm.store import Guard

RECOUNT = 0.1  # seconds until a count that something was charged against is made again
_MEASURED = (Pod, Service, PersistentVolumeClaim)  # of all others, only the number counts


class ResourceQuotaOptions(Options):
    """Tunables of the resource quota controller."""

    concurrent_resource_quota_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of resource quotas that are allowed to sync concurrently. Larger "
        "number = more responsive quota management, but more CPU load",
    )
    resource_quota_sync_period: timedelta = Field(
        timedelta(minutes=5),
        gt=timedelta(0),
        description="The period for syncing quota usage status in the system",
    )


class ResourceQuotaController(Controller):
    """One key per quota."""

    name = "resourcequota-controller"
    short_name = "resourcequota"
    options_type = ResourceQuotaOptions
    options: ResourceQuotaOptions
    reads = _MEASURED
    metadata_only = True
    local_only = True

    def watches(self) -> tuple[Watch, ...]:
        return (Watch(ResourceQuota, of_a_changed_quota), Watch(None, of_what_takes_less))

    def ticks(self) -> tuple[Tick, ...]:
        period = self.options.resource_quota_sync_period.total_seconds()
        return (Tick("resourcequota", period, self.count_all),)

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_resource_quota_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        quota = view.lister(ResourceQuota).find(key)
        if quota is None:
            return Plan()
        return Plan(plan_after=_again).then(*_counted(quota, view), optional=True)

    def count_all(self, view: View, state: Mapping[str, str]) -> Plan:
        """What no event told of: pods whose time to go ran out, objects that came uncharged."""
        quotas = view.lister(ResourceQuota).list()
        return Plan().then(*(write for quota in quotas for write in _counted(quota, view)))


def _counted(quota: ResourceQuota, view: View) -> Iterator[Patch]:
    """The write that says how much there is, where the status does not say so already."""
    spec, namespace = quota.spec, quota.namespace or ""
    hard = spec.hard or {}
    kinds = [found for found in scheme.resources() if _is_limited(found, hard)]
    # Before the caches are looked at: they move on.
    positions = {kind: view.position(kind.model) for kind in kinds}
    found = used_by(quota, kinds, lambda kind: view.lister(kind.model).list(namespace), view.now)
    before = {name: was for name, was in (quota.status.used or {}).items() if name in hard}
    status = ResourceQuotaStatus(hard=hard, used={**before, **found})

    def change(obj: KubeObject) -> KubeObject:
        assert isinstance(obj, ResourceQuota)
        return obj.with_status(status) if obj.spec == spec else obj  # else its own sync comes

    if quota.status.hard != status.hard or quota.status.used != status.used:
        yield Patch(quota, change, (Guard.counted(namespace, positions),), status=True)


def _again(outcome: Outcome) -> Plan:
    """Count once more when something was charged meanwhile: that is no failure."""
    found = [failure.error for failure in outcome.failures]
    worse = next((error for error in found if not isinstance(error, errors.Conflict)), None)
    if worse is not None:
        return Plan(error=worse)
    return Plan(requeue_after=RECOUNT) if found else Plan()


def _is_limited(resource: Resource, names: Iterable[str]) -> bool:
    return is_tracked(resource) and any(map(evaluator_of(resource).tracks, names))


# --- which keys


def of_a_changed_quota(change: Change, view: View) -> Iterable[str]:
    """The quota itself, unless only its status changed."""
    old, new = change.old, change.new
    assert isinstance(new, ResourceQuota | None)
    if new is not None and not (isinstance(old, ResourceQuota) and old.spec == new.spec):
        yield new.key


def of_what_takes_less(change: Change, view: View) -> Iterable[str]:
    """The quotas of which an object takes another amount than before."""
    old = change.old
    if old is None or not old.namespace:
        return
    quotas = view.lister(ResourceQuota).list(old.namespace)
    if not quotas:
        return
    resource = scheme.resource_of(old)
    if not is_tracked(resource):
        return
    evaluator = evaluator_of(resource)
    for quota in quotas:
        if any(map(evaluator.tracks, quota.spec.hard or ())) and _differs(
            change, quota, evaluator, view
        ):
            yield quota.key


def _differs(change: Change, quota: ResourceQuota, evaluator: Evaluator, view: View) -> bool:
    old, new = change.old, change.new
    assert old is not None
    if new is None or new.uid != old.uid:
        return True
    if not isinstance(new, _MEASURED):
        return False
    if evaluator.in_scopes(old, quota) != evaluator.in_scopes(new, quota):
        return True
    return evaluator.usage(old, view.now) != evaluator.usage(new, view.now)
