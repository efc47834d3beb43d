"""core/v1: PersistentVolumeClaim.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.api.core_v1.references import TypedLocalObjectReference, TypedObjectReference
from kcm.apimachinery.base import MergeKey, Model, StringMap
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector, Time
from kcm.apimachinery.quantity import ResourceList


class VolumeResourceRequirements(Model):
    """The smallest (requests) and largest (limits) size of a volume."""

    limits: ResourceList | None = None
    requests: ResourceList | None = None


class PersistentVolumeClaimSpec(Model):
    """The volume that a claim asks for: its size, access modes and class."""

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
    """The progress of a change to another VolumeAttributesClass."""

    target_volume_attributes_class_name: str | None = None
    status: str = ""


class PersistentVolumeClaimStatus(Model):
    """The phase of a claim, and the properties of the volume that is bound to it."""

    phase: str | None = None
    access_modes: list[str] | None = None
    capacity: ResourceList | None = None
    conditions: Annotated[list[PersistentVolumeClaimCondition] | None, MergeKey("type")] = None
    allocated_resources: ResourceList | None = None
    allocated_resource_statuses: StringMap | None = None
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None


class PersistentVolumeClaim(KubeObject):
    """A request for a volume that exists independently of pods. kcm binds no volumes to claims."""

    api_version: str = "v1"
    kind: str = "PersistentVolumeClaim"
    spec: PersistentVolumeClaimSpec = Field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = Field(default_factory=PersistentVolumeClaimStatus)
