"""Defaults of volume claims.

Source: pkg/apis/core/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import PersistentVolumeClaim, PersistentVolumeClaimSpec
from kcm.kinds.defaults.defaulting import change_fields, fill_absent, fill_defaults


def claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    return change_fields(
        claim, spec=claim_spec(claim.spec), status=fill_defaults(claim.status, phase="Pending")
    )


def claim_spec(spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaimSpec:
    return fill_absent(spec, volume_mode="Filesystem")


def claim_template(template: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Returns a claim template with its defaults, apiVersion and kind included."""
    return fill_defaults(claim(template), api_version="v1", kind="PersistentVolumeClaim")
