"""The columns of CertificateSigningRequests.

Source: pkg/printers/internalversion/printers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kcm.api.certificates_v1 import (
    APPROVED,
    DENIED,
    FAILED,
    CertificateSigningRequest,
    has_condition,
)
from kcm.api.certificates_v1beta1 import ClusterTrustBundle
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.printing.column import AGE, NAME, NONE, Column
from kcm.kinds.printing.durations import human_duration


def _duration(request: CertificateSigningRequest, _: datetime) -> str:
    seconds = request.spec.expiration_seconds
    return NONE if seconds is None else human_duration(float(seconds))


def _condition(request: CertificateSigningRequest, _: datetime) -> str:
    decision = "Denied" if has_condition(request, DENIED) else "Pending"
    if decision == "Pending" and has_condition(request, APPROVED):
        decision = "Approved"
    failed = ",Failed" if has_condition(request, FAILED) else ""
    return f"{decision}{failed}{',Issued' if request.status.certificate else ''}"


COLUMNS: Mapping[type[KubeObject], tuple[Column, ...]] = {
    CertificateSigningRequest: (
        NAME,
        AGE,
        Column("SignerName", lambda request, _: request.spec.signer_name or NONE),
        Column("Requestor", lambda request, _: request.spec.username or ""),
        Column("RequestedDuration", _duration),
        Column("Condition", _condition),
    ),
    ClusterTrustBundle: (
        NAME,
        Column("SignerName", lambda bundle, _: bundle.spec.signer_name or NONE),
    ),
}
