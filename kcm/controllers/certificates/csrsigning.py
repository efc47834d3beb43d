"""CSR signing: issues certificates for approved requests to the signers of Kubernetes.

Each signer has files of its own, or those of the cluster. They are configuration: the authority is
read again when its files change.
Source: pkg/controller/certificates/signer/signer.go and cmd/kube-controller-manager/app/
certificates.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import Field

from kcm.api.certificates_v1 import (
    API_SERVER_CLIENT,
    API_SERVER_CLIENT_KUBELET,
    APPROVED,
    FAILED,
    KUBELET_SERVING,
    LEGACY_UNKNOWN,
    CertificateSigningRequest,
    has_condition,
)
from kcm.apimachinery.certificates import CertificateRequest, parse_request
from kcm.apimachinery.durations import GoDuration
from kcm.helpers.authority import load_authority
from kcm.helpers.signing_requests import (
    check_kubelet_client,
    check_kubelet_serving,
    with_condition,
)
from kcm.sdk import Controller, Options, Plan, UpdateStatus, View, Watch, own_key

_SHORTEST = timedelta(minutes=10)
_INVALID = "SignerValidationFailure"
_CLIENT_USAGES = frozenset({"digital signature", "key encipherment", "client auth"})


def _certificate_option(whose: str) -> Any:
    """Returns the field for the certificate file of an authority."""
    return Field(
        default="",
        description=f"Filename containing a PEM-encoded X509 CA certificate used to {whose}",
    )


def _key_option(whose: str) -> Any:
    """Returns the field for the key file of an authority."""
    return Field(
        default="",
        description=f"Filename containing a PEM-encoded RSA or ECDSA private key used to {whose}",
    )


_FOR = "issue certificates for the {} signer. Without it, that of the cluster is used"


class CSRSigningOptions(Options):
    """The options of the CSR signing controller."""

    cluster_signing_cert_file: str = _certificate_option("issue cluster-scoped certificates")
    cluster_signing_key_file: str = _key_option("sign cluster-scoped certificates")
    cluster_signing_kubelet_serving_cert_file: str = _certificate_option(
        _FOR.format(KUBELET_SERVING)
    )
    cluster_signing_kubelet_serving_key_file: str = _key_option(_FOR.format(KUBELET_SERVING))
    cluster_signing_kubelet_client_cert_file: str = _certificate_option(
        _FOR.format(API_SERVER_CLIENT_KUBELET)
    )
    cluster_signing_kubelet_client_key_file: str = _key_option(
        _FOR.format(API_SERVER_CLIENT_KUBELET)
    )
    cluster_signing_kube_apiserver_client_cert_file: str = _certificate_option(
        _FOR.format(API_SERVER_CLIENT)
    )
    cluster_signing_kube_apiserver_client_key_file: str = _key_option(
        _FOR.format(API_SERVER_CLIENT)
    )
    cluster_signing_legacy_unknown_cert_file: str = _certificate_option(_FOR.format(LEGACY_UNKNOWN))
    cluster_signing_legacy_unknown_key_file: str = _key_option(_FOR.format(LEGACY_UNKNOWN))
    cluster_signing_duration: GoDuration = Field(
        default=timedelta(days=365),
        gt=timedelta(),
        description="The max length of duration signed certificates will be given. Individual CSRs "
        "may request shorter certs by setting spec.expirationSeconds",
    )


def _check_client(request: CertificateRequest, usages: Collection[str]) -> None:
    for usage in usages:
        if usage not in _CLIENT_USAGES:
            raise ValueError(f"invalid usage for client certificate: {usage}")
    if "client auth" not in usages:
        raise ValueError("missing required usage for client certificate: client auth")


def _accept(request: CertificateRequest, usages: Collection[str]) -> None:
    """Accepts every request, as the legacy signer does."""


@dataclass(frozen=True)
class _Signer:
    """A signer: the middle of its options' names, and its check, which raises ValueError."""

    option: str
    check: Callable[[CertificateRequest, Collection[str]], None]


_SIGNERS = {
    KUBELET_SERVING: _Signer("kubelet_serving", check_kubelet_serving),
    API_SERVER_CLIENT_KUBELET: _Signer("kubelet_client", check_kubelet_client),
    API_SERVER_CLIENT: _Signer("kube_apiserver_client", _check_client),
    LEGACY_UNKNOWN: _Signer("legacy_unknown", _accept),
}


class CSRSigningController(Controller):
    """Issues certificates. A key is a CertificateSigningRequest."""

    name = "certificatesigningrequest-signing-controller"
    short_name = "csrsigning"
    options_type = CSRSigningOptions
    options: CSRSigningOptions

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(CertificateSigningRequest, own_key),)

    def reconcile(self, key: str, view: View) -> Plan:
        request = view.lister(CertificateSigningRequest).find(key)
        if request is None or request.deleting or request.status.certificate:
            return Plan()
        if not has_condition(request, APPROVED) or has_condition(request, FAILED):
            return Plan()
        signer = _SIGNERS.get(request.spec.signer_name)
        files = self._files(signer) if signer is not None else ("", "")
        if signer is None or not all(files):
            return Plan()
        parsed, usages = parse_request(request.spec.request), request.spec.usages or []
        try:
            signer.check(parsed, usages)
        except ValueError as why:
            failed = with_condition(request, FAILED, _INVALID, str(why), view.now)
            return Plan().then(UpdateStatus(failed, request))
        authority = load_authority(*files)
        issued = authority.sign(parsed, usages, self._duration(request), view.now)
        certificate = base64.b64encode(issued).decode()
        new = request.with_status(request.status.replace(certificate=certificate))
        return Plan().then(UpdateStatus(new, request))

    def _files(self, signer: _Signer) -> tuple[str, str]:
        """Returns the certificate and key files of a signer, empty without an authority."""
        certificate: str = getattr(self.options, f"cluster_signing_{signer.option}_cert_file")
        key: str = getattr(self.options, f"cluster_signing_{signer.option}_key_file")
        if certificate or key:
            return certificate, key
        return self.options.cluster_signing_cert_file, self.options.cluster_signing_key_file

    def _duration(self, request: CertificateSigningRequest) -> timedelta:
        """Returns how long the certificate will be valid."""
        longest = self.options.cluster_signing_duration
        seconds = request.spec.expiration_seconds
        if seconds is None:
            return longest
        return min(longest, max(_SHORTEST, timedelta(seconds=seconds)))
