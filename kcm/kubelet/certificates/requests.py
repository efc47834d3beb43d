"""Requests certificates by CertificateSigningRequests, and waits until they are issued.

Source: staging/src/k8s.io/client-go/util/certificate/csr/csr.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.x509.oid import NameOID

from kcm import errors
from kcm.clock import Clock

log = structlog.get_logger("kcm.kubelet")

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT_USAGES = ("digital signature", "client auth")
SERVING_USAGES = ("digital signature", "server auth")
TIMEOUT = 15 * 60.0  # seconds until a request is given up, as upstream
_FIRST_LOOK, _LONGEST_LOOK = 0.1, 5.0  # seconds between looks at a request
_PEM = serialization.Encoding.PEM


class Sender(Protocol):
    """Sends requests to an API server, as `kcm.store.remote.rest.RestClient` does."""

    def request(self, method: str, path: str, *, body: Any = None) -> bytes: ...


@dataclass(frozen=True)
class Template:
    """What a certificate shall say, and who signs it."""

    signer: str
    usages: tuple[str, ...]
    common_name: str
    organizations: tuple[str, ...] = ("system:nodes",)
    dns_names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset({*self.dns_names, *self.addresses})


class RefusedRequest(errors.KcmError):
    """A signing request was denied, has failed, or was not decided in time."""


@dataclass(frozen=True)
class Requester:
    """Requests certificates of an API server. `stop` ends all waits."""

    sender: Sender
    clock: Clock
    stop: threading.Event = field(default_factory=threading.Event)

    def request(self, template: Template, key: EllipticCurvePrivateKey, name: str = "") -> bytes:
        """Returns a new certificate in PEM.

        A request with a name may have been made before, by a kubelet that was ended while it
        waited; then its certificate is returned. Raises RefusedRequest, ApiError and Temporary.
        """
        metadata = {"name": name} if name else {"generateName": "csr-"}
        body = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": metadata,
            "spec": {
                "request": base64.b64encode(build_request(template, key)).decode(),
                "signerName": template.signer,
                "usages": list(template.usages),
            },
        }
        with suppress(errors.AlreadyExists):
            name = str(_read(self.sender.request("POST", PATH, body=body))["metadata"]["name"])
        log.info("Waiting for a certificate", request=name, signer=template.signer)
        return self._wait_for(name)

    def _wait_for(self, name: str) -> bytes:
        deadline = self.clock.monotonic() + TIMEOUT
        pause = _FIRST_LOOK
        while self.clock.monotonic() < deadline:
            status = _read(self.sender.request("GET", f"{PATH}/{name}")).get("status") or {}
            _check_conditions(name, status.get("conditions") or ())
            if status.get("certificate"):
                return _decode(name, status["certificate"])
            if self.clock.wait(self.stop, pause):
                raise RefusedRequest(f"the kubelet stops before {name} is signed")
            pause = min(pause * 2, _LONGEST_LOOK)
        raise RefusedRequest(f"nobody has decided about {name} within {TIMEOUT:.0f} s")


def _read(answer: bytes) -> dict[str, Any]:
    try:
        read: dict[str, Any] = json.loads(answer)
        read["metadata"].keys()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise errors.StoreUnavailable(f"not a signing request: {error}") from None
    return read


def _decode(name: str, certificate: object) -> bytes:
    try:
        return base64.b64decode(str(certificate))
    except ValueError:
        raise RefusedRequest(f"the certificate of {name} is not valid base64") from None


def _check_conditions(name: str, conditions: tuple[Mapping[str, Any], ...]) -> None:
    for condition in conditions:
        words = f"reason: {condition.get('reason', '')}, message: {condition.get('message', '')}"
        if condition.get("type") == "Denied":
            raise RefusedRequest(f"certificate signing request {name} is denied, {words}")
        if condition.get("type") == "Failed":
            raise RefusedRequest(f"certificate signing request {name} failed, {words}")


def new_key() -> EllipticCurvePrivateKey:
    """Returns a new key on the curve P-256, as upstream's kubelets have."""
    return ec.generate_private_key(ec.SECP256R1())


def encode_key(key: EllipticCurvePrivateKey) -> bytes:
    """Returns a key in PEM, not encrypted."""
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def name_for_key(key: EllipticCurvePrivateKey, template: Template) -> str:
    """Returns the name of a request for a key, the same each time for the same template."""
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    asked = json.dumps([template.signer, template.common_name, *template.usages]).encode()
    digest = hashlib.sha256(public + asked).digest()
    return "node-csr-" + base64.urlsafe_b64encode(digest).decode().rstrip("=").lower().replace(
        "_", "x"
    ).replace("-", "y")


def build_request(template: Template, key: EllipticCurvePrivateKey) -> bytes:
    """Returns a certificate signing request in PEM."""
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in template.organizations]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, template.common_name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    hosts: list[x509.GeneralName] = [
        *map(x509.DNSName, template.dns_names),
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in template.addresses),
    ]
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(_PEM)
