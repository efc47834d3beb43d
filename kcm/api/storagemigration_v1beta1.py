"""storagemigration.k8s.io/v1beta1: StorageVersionMigration.

Source: staging/src/k8s.io/api/storagemigration/v1beta1/types.go, Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from kcm.apimachinery.base import MergeKey, Model
from kcm.apimachinery.meta_v1 import Condition, GroupResource, KubeObject

RUNNING, SUCCEEDED, FAILED = "Running", "Succeeded", "Failed"


class StorageVersionMigrationSpec(Model):
    """The kind whose objects are to be stored in its present storage version."""

    resource: GroupResource = Field(default_factory=GroupResource)


class StorageVersionMigrationStatus(Model):
    """How far the migration is."""

    conditions: Annotated[list[Condition] | None, MergeKey("type")] = None
    resource_version: str | None = None


class StorageVersionMigration(KubeObject):
    """Asks for all objects of a kind to be rewritten in the kind's storage version."""

    api_version: str = "storagemigration.k8s.io/v1beta1"
    kind: str = "StorageVersionMigration"
    spec: StorageVersionMigrationSpec = Field(default_factory=StorageVersionMigrationSpec)
    status: StorageVersionMigrationStatus = Field(default_factory=StorageVersionMigrationStatus)


def is_true(migration: StorageVersionMigration, kind: str) -> bool:
    """Reports whether the migration has a condition of this type that is True."""
    return any(
        condition.type == kind and condition.status == "True"
        for condition in migration.status.conditions or ()
    )


def change_from_v1alpha1(body: dict[str, Any]) -> None:
    """Turns the JSON of a migration in v1alpha1 into that in v1beta1, in place.

    In v1alpha1, which earlier versions of kcm served, a kind was named in one version, and a
    condition had the time of its last update.
    """
    spec = body.get("spec") or {}
    spec.pop("continueToken", None)
    (spec.get("resource") or {}).pop("version", None)
    for condition in (body.get("status") or {}).get("conditions") or ():
        condition["lastTransitionTime"] = condition.pop("lastUpdateTime", None)
