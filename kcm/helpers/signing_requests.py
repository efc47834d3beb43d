"""Certificate signing requests: which are those of kubelets, and their conditions.

Source: pkg/apis/certificates/helpers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from kcm.api.certificates_v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
)
from kcm.apimachinery.certificates import CertificateRequest

NODES = "system:nodes"
_NODE_PREFIX = "system:node:"
_CLIENT = frozenset({"digital signature", "key encipherment", "client auth"})
_SERVING = frozenset({"digital signature", "key encipherment", "server auth"})
_ONLY_RSA = "key encipherment"  # other keys cannot encipher, so their requests leave it out


def check_kubelet_serving(request: CertificateRequest, usages: Collection[str]) -> None:
    """Raises ValueError, with upstream's message, unless a kubelet asks for a serving
    certificate.
    """
    if request.organizations != (NODES,):
        raise ValueError("subject organization is not system:nodes")
    if not request.dns_names and not request.addresses:
        raise ValueError("DNS or IP subjectAltName is required")
    if request.emails:
        raise ValueError("Email subjectAltNames are not allowed")
    if request.uris:
        raise ValueError("URI subjectAltNames are not allowed")
    _check_usages(usages, _SERVING)
    _check_name(request)


def check_kubelet_client(request: CertificateRequest, usages: Collection[str]) -> None:
    """Raises ValueError, with upstream's message, unless a kubelet asks for a client
    certificate.
    """
    if request.organizations != (NODES,):
        raise ValueError("subject organization is not system:nodes")
    for names, kind in (
        (request.dns_names, "DNS"),
        (request.emails, "Email"),
        (request.addresses, "IP"),
        (request.uris, "URI"),
    ):
        if names:
            raise ValueError(f"{kind} subjectAltNames are not allowed")
    _check_name(request)
    _check_usages(usages, _CLIENT)


def _check_usages(usages: Collection[str], wanted: frozenset[str]) -> None:
    if frozenset(usages) not in (wanted, wanted - {_ONLY_RSA}):
        raise ValueError(f"usages did not match [{' '.join(sorted(wanted))}]")


def _check_name(request: CertificateRequest) -> None:
    if not request.common_name.startswith(_NODE_PREFIX):
        raise ValueError("subject common name does not begin with system:node:")


def with_condition(
    request: CertificateSigningRequest, kind: str, reason: str, message: str, now: datetime
) -> CertificateSigningRequest:
    """Returns the request with one more condition, which is true since now."""
    now = now.replace(microsecond=0)
    condition = CertificateSigningRequestCondition(
        type=kind,
        status="True",
        reason=reason,
        message=message,
        last_update_time=now,
        last_transition_time=now,
    )
    conditions = [*(request.status.conditions or ()), condition]
    return request.with_status(request.status.replace(conditions=conditions))
