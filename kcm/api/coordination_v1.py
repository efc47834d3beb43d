"""coordination.k8s.io/v1: Lease.

Source: staging/src/k8s.io/api/coordination/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.apimachinery.base import Int32, Model
from kcm.apimachinery.meta_v1 import KubeObject, MicroTime


class LeaseSpec(Model):
    """The holder of a lease, when it acquired and renewed it, and how long a renewal is valid."""

    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: Int32 | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(KubeObject):
    """A right that one holder at a time has and renews, as in leader election."""

    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"
    spec: LeaseSpec = Field(default_factory=LeaseSpec)
