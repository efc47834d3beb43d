"""Validation of StorageVersionMigrations.

Source: pkg/apis/storagemigration/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.storagemigration_v1alpha1 import (
    FAILED,
    RUNNING,
    SUCCEEDED,
    StorageVersionMigration,
    is_true,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import Faults, invalid, not_negative, require_unchanged, required
from kcm.kinds.validation import meta

_CONDITIONS, _VERSION = "status.conditions", "status.resourceVersion"


def create(migration: StorageVersionMigration) -> Faults:
    faults = meta.metadata(migration, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _resource(migration)


def update(new: StorageVersionMigration, old: StorageVersionMigration) -> Faults:
    faults = _resource(new) + meta.metadata_update(new, old)
    for field in ("group", "version", "resource"):
        before = getattr(old.spec.resource, field) or ""
        after = getattr(new.spec.resource, field) or ""
        faults += require_unchanged(f"spec.resource.{field}", after, before)
    return faults


def _resource(migration: StorageVersionMigration) -> Faults:
    resource = migration.spec.resource
    return [
        required(f"spec.resource.{field}", f"{field} is required")
        for field in ("resource", "version")
        if not getattr(resource, field)
    ]


def status_update(new: StorageVersionMigration, old: StorageVersionMigration) -> Faults:
    faults = meta.metadata_update(new, old) + _version(new)
    before = old.status.resource_version or ""
    if before:
        faults += require_unchanged(_VERSION, new.status.resource_version or "", before)
    succeeded, failed, runs = (is_true(new, kind) for kind in (SUCCEEDED, FAILED, RUNNING))
    checks = [
        (succeeded and failed,
         "Both success and failed conditions cannot be true at the same time"),
        (succeeded and runs, "Running condition cannot be true when success condition is true"),
        (failed and runs, "Running condition cannot be true when failed condition is true"),
        (is_true(old, SUCCEEDED) and not succeeded,
         "Success condition cannot be set to false once it is true"),
        (is_true(old, FAILED) and not failed,
         "Failed condition cannot be set to false once it is true"),
    ]  # fmt: skip
    shown = new.status.conditions
    return faults + [invalid(_CONDITIONS, shown, why) for is_wrong, why in checks if is_wrong]


def _version(migration: StorageVersionMigration) -> Faults:
    text = migration.status.resource_version or ""
    digits = text.removeprefix("-")
    if text and not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        why = f'failed to parse resource version "{text}": invalid syntax'
        return [invalid(_VERSION, text, why)]
    return not_negative(_VERSION, int(text or 0))
