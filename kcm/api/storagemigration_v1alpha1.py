"""storagemigration.k8s.io/v1alpha1: StorageVersionMigration.

Source: staging/src/k8s.io/api/storagemigration/v1alpha1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.apimachinery.base import MergeKey, Model
from kcm.apimachinery.meta_v1 import KubeObject, Time

RUNNING, SUCCEEDED, FAILED = "Running", "Succeeded", "Failed"


class GroupVersionResource(Model):
    """A kind in one version, by its plural."""

    group: str | None = None
    version: str | None = None
    resource: str | None = None


class StorageVersionMigrationSpec(Model):
    """The kind whose objects are to be stored in its present storage version."""

    resource: GroupVersionResource = Field(default_factory=GroupVersionResource)
    continue_token: str | None = None


class MigrationCondition(Model):
    """One aspect of a migration's state."""

    type: str = ""
    status: str = ""
    last_update_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class StorageVersionMigrationStatus(Model):
    """How far the migration is."""

    conditions: Annotated[list[MigrationCondition] | None, MergeKey("type")] = None
    resource_version: str | None = None


class StorageVersionMigration(KubeObject):
    """Asks for all objects of a kind to be rewritten in the kind's storage version."""

    api_version: str = "storagemigration.k8s.io/v1alpha1"
    kind: str = "StorageVersionMigration"
    spec: StorageVersionMigrationSpec = Field(default_factory=StorageVersionMigrationSpec)
    status: StorageVersionMigrationStatus = Field(default_factory=StorageVersionMigrationStatus)


def is_true(migration: StorageVersionMigration, kind: str) -> bool:
    """Reports whether the migration has a condition of this type that is True."""
    return any(
        condition.type == kind and condition.status == "True"
        for condition in migration.status.conditions or ()
    )
