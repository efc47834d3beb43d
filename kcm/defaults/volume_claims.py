"""Defaults of claims for volumes.

Source: pkg/apis/core/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import PersistentVolumeClaim, PersistentVolumeClaimSpec
from kcm.defaults.filling import changed, filled


def claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    return changed(claim, spec=claim_spec(claim.spec), status=filled(claim.status, phase="Pending"))


def claim_spec(spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaimSpec:
    return filled(spec, volume_mode="Filesystem")


def claim_template(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """One inside another object, which may leave out what it is."""
    return filled(_claim(claim), api_version="v1", kind="PersistentVolumeClaim")


_claim = claim  # the argument of the functions is of the same name
