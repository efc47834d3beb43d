"""certificates.k8s.io/v1: CertificateSigningRequest.

Source: staging/src/k8s.io/api/certificates/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.apimachinery.base import Int32, MergeKey, Model
from kcm.apimachinery.meta_v1 import KubeObject, Time

APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"

API_SERVER_CLIENT = "kubernetes.io/kube-apiserver-client"
API_SERVER_CLIENT_KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
LEGACY_UNKNOWN = "kubernetes.io/legacy-unknown"

USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)


class CertificateSigningRequestSpec(Model):
    """The request, its signer, and the user who sent it. Immutable after creation.

    The server sets `username`, `uid`, `groups` and `extra`.
    """

    request: str = ""  # PEM in base64
    signer_name: str = ""
    expiration_seconds: Int32 | None = None
    usages: list[str] | None = None
    username: str | None = None
    uid: str | None = None
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class CertificateSigningRequestCondition(Model):
    """One condition of a request. Approved, Denied and Failed can only be True."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_update_time: Time | None = None
    last_transition_time: Time | None = None


class CertificateSigningRequestStatus(Model):
    """Whether the request is approved or denied, and the certificate that was issued."""

    conditions: Annotated[
        list[CertificateSigningRequestCondition] | None, MergeKey("type", patches=False)
    ] = None
    certificate: str | None = None  # PEM in base64


class CertificateSigningRequest(KubeObject):
    """Asks a signer for a certificate, which it issues once the request is approved."""

    api_version: str = "certificates.k8s.io/v1"
    kind: str = "CertificateSigningRequest"
    spec: CertificateSigningRequestSpec = Field(default_factory=CertificateSigningRequestSpec)
    status: CertificateSigningRequestStatus = Field(default_factory=CertificateSigningRequestStatus)


def has_condition(request: CertificateSigningRequest, kind: str) -> bool:
    """Reports whether the request has a condition of this type."""
    return any(condition.type == kind for condition in request.status.conditions or ())
