"""core/v1: PersistentVolumeClaim.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.api.core_v1.references import TypedLocalObjectReference, TypedObjectReference
from kcm.apimachinery.base import MergeKey, Model, StringMap
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector
from kcm.apimachinery.quantity import ResourceList
from kcm.apimachinery.times import Time


class VolumeResourceRequirements(Model):
    """How large a volume must and may be."""

    limits: ResourceList | None = None
    requests: ResourceList | None = None


class PersistentVolumeClaimSpec(Model):
    """What volume is wanted."""

    access_modes: list[str] | None = None
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = Field(default_factory=VolumeResourceRequirements)
    volume_name: str | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimCondition(Model):
    """One aspect of a claim's state."""

    type: str = ""
    status: str = ""
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class ModifyVolumeStatus(Model):
    """How far a change of the volume's attributes has come."""

    target_volume_attributes_class_name: str | None = None
    status: str = ""


class PersistentVolumeClaimStatus(Model):
    """What volume was found."""

    phase: str | None = None
    access_modes: list[str] | None = None
    capacity: ResourceList | None = None
    conditions: Annotated[list[PersistentVolumeClaimCondition] | None, MergeKey("type")] = None
    allocated_resources: ResourceList | None = None
    allocated_resource_statuses: StringMap | None = None
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None


class PersistentVolumeClaim(KubeObject):
    """A wish for a volume that outlives pods."""

    api_version: str = "v1"
    kind: str = "PersistentVolumeClaim"
    spec: PersistentVolumeClaimSpec = Field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = Field(default_factory=PersistentVolumeClaimStatus)
