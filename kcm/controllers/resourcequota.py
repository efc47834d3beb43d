"""ResourceQuota: recounts the usage of quotas where it may have decreased.

Creating an object charges its quotas in the same write (`kcm.store.admission.quotas`), so no
recount is needed for that. This controller recounts a quota when it is new or its spec changes,
when an object that it limits is deleted, ends or uses less, and periodically. A count is written
only if it includes everything that was charged.

Source: pkg/controller/resourcequota/{resource_quota_controller,resource_quota_monitor}.go and
pkg/quota/v1/install/update_filter.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from pydantic import Field

from kcm import errors
from kcm.api.core_v1 import (
    PersistentVolumeClaim,
    Pod,
    ResourceQuota,
    ResourceQuotaStatus,
    Service,
)
from kcm.api.scheme import Resource
from kcm.kinds.quota import Evaluator, evaluator_of, is_tracked, used_by
from kcm.sdk import (
    Change,
    Controller,
    NothingCharged,
    Options,
    Outcome,
    PassPlan,
    Patch,
    Plan,
    Tick,
    View,
    Watch,
)

RECOUNT = 0.1  # seconds until the next count, if an object was charged during the last one
_MEASURED = (Pod, Service, PersistentVolumeClaim)  # of all other kinds quotas limit the number only


class ResourceQuotaOptions(Options):
    """The options of the resource quota controller."""

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
    """Recounts the usage of ResourceQuotas. A key is a quota."""

    name = "resourcequota-controller"
    short_name = "resourcequota"
    options_type = ResourceQuotaOptions
    options: ResourceQuotaOptions
    reads = _MEASURED
    metadata_only = True

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(ResourceQuota, find_changed_quota), Watch(None, quotas_of_lower_usage))

    def ticks(self) -> tuple[Tick, ...]:
        period = self.options.resource_quota_sync_period.total_seconds()
        return (Tick("resourcequota", period, self.count_all),)

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_resource_quota_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        quota = view.lister(ResourceQuota).find(key)
        if quota is None:
            return Plan()
        return Plan(plan_after=_recount).then(*_usage_writes(quota, view), optional=True)

    def count_all(self, view: View, state: Mapping[str, str]) -> PassPlan:
        """Returns a plan that recounts all quotas.

        This finds changes that no watch event reports, such as pods that are terminating for longer
        than their grace period, and objects that were created without a charge.
        """
        quotas = view.lister(ResourceQuota).list()
        pods = view.lister(Pod).list() if quotas else ()
        plan = PassPlan(waits=tuple(pod.key for pod in pods if pod.deleting))
        return plan.then(*(write for quota in quotas for write in _usage_writes(quota, view)))


def _usage_writes(quota: ResourceQuota, view: View) -> Iterator[Patch[ResourceQuota]]:
    """Yields the write of the quota's usage, unless its status is right already."""
    spec, namespace = quota.spec, quota.namespace or ""
    hard = spec.hard or {}
    kinds = [usage for usage in view.scheme.resources() if _is_limited(usage, hard)]
    # Taken before the caches are read, since the caches move on.
    positions = {kind: view.position(kind.model) for kind in kinds}
    usage = used_by(quota, kinds, lambda kind: view.lister(kind.model).list(namespace), view.now)
    before = {name: was for name, was in (quota.status.used or {}).items() if name in hard}
    status = ResourceQuotaStatus(hard=hard, used={**before, **usage})

    def change(obj: ResourceQuota) -> ResourceQuota:
        # A changed spec has a sync of its own.
        return obj.with_status(status) if obj.spec == spec else obj

    if quota.status.hard != status.hard or quota.status.used != status.used:
        since = tuple((kind.name, position) for kind, position in positions.items())
        yield Patch(quota, change, (NothingCharged(namespace, since),), status=True)


def _recount(outcome: Outcome) -> Plan:
    """Returns the next plan: another count if an object was charged meanwhile.

    That is not a failure, so there is no back-off.
    """
    failed = [failure.error for failure in outcome.failures]
    worse = next((error for error in failed if not isinstance(error, errors.Conflict)), None)
    if worse is not None:
        return Plan(error=worse)
    return Plan(requeue_after=RECOUNT) if failed else Plan()


def _is_limited(resource: Resource, names: Iterable[str]) -> bool:
    return is_tracked(resource) and any(map(evaluator_of(resource).tracks, names))


# --- which keys


def find_changed_quota(change: Change[ResourceQuota], view: View) -> Iterable[str]:
    """Yields the key of a quota that is new or whose spec changed."""
    old, new = change.old, change.new
    if new is not None and not (isinstance(old, ResourceQuota) and old.spec == new.spec):
        yield new.key


def quotas_of_lower_usage(change: Change, view: View) -> Iterable[str]:
    """Yields the quotas that an object uses in another amount than before, if it was not just
    created.
    """
    old = change.old
    if old is None or not old.namespace:
        return
    quotas = view.lister(ResourceQuota).list(old.namespace)
    if not quotas:
        return
    resource = old.resource
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
