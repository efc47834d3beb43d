"""Storage version migrator: rewrites the objects of a kind in the kind's storage version.

A custom kind whose definition gets another storage version keeps its objects in the version in
which they were written last, until they are written again. A StorageVersionMigration asks for that:
each sync looks at up to BUDGET objects and rewrites those in another version, and the next one goes
on from there, in whatever process. What somebody else writes meanwhile is left alone: it is in the
storage version already. Kinds of kcm itself have one storage version, so their migrations end
without a write.

Upstream runs it behind the feature gate StorageVersionMigrator (beta, off by default in 1.36); here
it is on.

Source: pkg/controller/storageversionmigrator, Kubernetes 1.36. Departures: objects are read from
the store instead of the garbage collector's cache, page by page. One that cannot be rewritten does
not end the migration before all others are rewritten; it fails then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kcm import errors
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.api.storagemigration_v1beta1 import (
    FAILED,
    RUNNING,
    SUCCEEDED,
    StorageVersionMigration,
    is_true,
)
from kcm.apiextensions.kinds import is_served
from kcm.apimachinery.meta_v1 import Condition
from kcm.sdk import Controller, Outcome, Plan, RewriteObjects, UpdateStatus, View, Watch, own_key

RETRY = 1.0  # seconds until the next attempt while this process does not know the kind
BUDGET = 500  # objects that one sync looks at
_SUCCESS = "StorageVersionMigrationSucceeded"
_IN_PROGRESS = "StorageVersionMigrationInProgress"
_FAILURE = "StorageVersionMigrationFailed"


class StorageVersionMigrator(Controller):
    """Carries out StorageVersionMigrations. A key is a migration."""

    name = "storage-version-migrator-controller"
    short_name = "storageversionmigrator"
    reads = (CustomResourceDefinition,)
    remembers = True
    local_only = True

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(StorageVersionMigration, own_key),)

    def reconcile(self, key: str, view: View) -> Plan:
        migration = view.lister(StorageVersionMigration).find(key)
        if migration is None or is_true(migration, SUCCEEDED) or is_true(migration, FAILED):
            return Plan(state={})
        try:
            resource = find_resource(migration, view)
        except NotYetKnownError:
            return Plan(requeue_after=RETRY)
        if resource is None:
            why = "resource does not exist in discovery"
            return _finish(migration, FAILED, _FAILURE, why, view.now)
        if not is_true(migration, RUNNING) or not migration.status.resource_version:
            return _start(migration, view)
        progress = view.memory if view.memory.get("uid") == migration.uid else {}
        return _rewrite_next(migration, resource, progress, view.now)


def find_resource(migration: StorageVersionMigration, view: View) -> Resource | None:
    """Returns the storage version of the kind that a migration names, or None if there is none.

    Raises NotYetKnownError if this process does not serve the kind as its definition says.
    """
    wanted = migration.spec.resource
    name = f"{wanted.resource}.{wanted.group}".rstrip(".")
    stored = next(iter(view.scheme.versions(name)), None)
    if stored is not None and not isinstance(stored, CustomResource):
        return stored
    definition = view.lister(CustomResourceDefinition).find(name)
    if definition is None or not is_served(definition):
        return None
    version = next((one.name for one in definition.spec.versions if one.storage), "")
    if stored is None or stored.version != version:
        raise NotYetKnownError(f"{definition.name} is not served here as its definition says yet")
    return stored


class NotYetKnownError(errors.KcmError):
    """This process does not know the latest definition of a kind yet."""


def _start(migration: StorageVersionMigration, view: View) -> Plan:
    """Returns the plan that notes up to where objects may be in another version."""
    version = str(view.position(StorageVersionMigration))
    status = migration.status.replace(resource_version=migration.status.resource_version or version)
    noted = migration.with_status(status)
    started = with_condition(noted, RUNNING, _IN_PROGRESS, "", view.now)
    return Plan(state={}).then(UpdateStatus(started, migration))


def _rewrite_next(
    migration: StorageVersionMigration,
    resource: Resource,
    progress: Mapping[str, str],
    now: datetime,
) -> Plan:
    """Returns the plan that rewrites the next objects and remembers the last of them."""
    after, failed = progress.get("after", ""), progress.get("failed", "")

    def go_on(outcome: Outcome) -> Plan:
        [page] = outcome.rewritings
        any_failed = "yes" if page.failed or failed else ""
        if page.after:
            state = {"uid": migration.uid, "after": page.after, "failed": any_failed}
            return Plan(state=state, requeue_after=0.0)
        if any_failed:
            why = "migration encountered unhandled error"
            return _finish(migration, FAILED, _FAILURE, why, now)
        return _finish(migration, SUCCEEDED, _SUCCESS, "", now)

    return Plan([RewriteObjects(resource, after, BUDGET)], plan_after=go_on)


def _finish(
    migration: StorageVersionMigration, kind: str, reason: str, message: str, now: datetime
) -> Plan:
    finished = with_condition(migration, kind, reason, message, now)
    return Plan(state={}).then(UpdateStatus(finished, migration))


def with_condition(
    migration: StorageVersionMigration, kind: str, reason: str, message: str, now: datetime
) -> StorageVersionMigration:
    """Returns the migration with a condition that is True. One that has ended no longer runs."""
    if is_true(migration, kind):
        return migration
    conditions: Sequence[Condition] = migration.status.conditions or ()
    if kind in (SUCCEEDED, FAILED):
        conditions = [
            one.replace(status="False") if one.type == RUNNING else one for one in conditions
        ]
    new = Condition(
        type=kind, status="True", last_transition_time=now.replace(microsecond=0), reason=reason,
        message=message,
    )  # fmt: skip
    status = migration.status.replace(conditions=[*conditions, new])
    return migration.with_status(status)
