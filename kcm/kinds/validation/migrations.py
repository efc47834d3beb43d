"""Validation of StorageVersionMigrations.

Source: pkg/apis/storagemigration/validation/validation.go, Kubernetes 1.36.
"""

from __future__ import annotations

from kcm.api.storagemigration_v1beta1 import (
    FAILED,
    SUCCEEDED,
    StorageVersionMigration,
    is_true,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import Faults, invalid, not_negative, require_unchanged, required
from kcm.kinds.validation import meta
from kcm.kinds.validation.disruption import conditions

_CONDITIONS, _VERSION = "status.conditions", "status.resourceVersion"


def create(migration: StorageVersionMigration) -> Faults:
    faults = meta.metadata(migration, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _resource(migration)


def update(new: StorageVersionMigration, old: StorageVersionMigration) -> Faults:
    return [
        *_resource(new),
        *meta.metadata_update(new, old),
        *require_unchanged("spec", new.spec, old.spec),
    ]


def _resource(migration: StorageVersionMigration) -> Faults:
    resource, path = migration.spec.resource, "spec.resource"
    faults: Faults = []
    if not resource.resource:
        faults.append(required(f"{path}.resource", "resource is required to be set"))
    elif details := names.label_1035_faults(resource.resource):
        faults.append(invalid(f"{path}.resource", resource.resource, ",".join(details)))
    if resource.group and (details := names.subdomain_faults(resource.group)):
        faults.append(invalid(f"{path}.group", resource.group, ",".join(details)))
    return faults


def status_update(new: StorageVersionMigration, old: StorageVersionMigration) -> Faults:
    faults = meta.metadata_update(new, old) + _version(new)
    faults += conditions(new.status.conditions or [], _CONDITIONS)
    before = old.status.resource_version or ""
    if before:
        faults += require_unchanged(_VERSION, new.status.resource_version or "", before)
    succeeded, failed = is_true(new, SUCCEEDED), is_true(new, FAILED)
    checks = [
        (succeeded and failed,
         "Both success and failed conditions cannot be true at the same time"),
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
