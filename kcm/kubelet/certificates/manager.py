"""Rotates a certificate: requests a new one after 70 to 90 % of the old one's life.

Guarantees: while no new certificate is issued, the old one stays in use, and it is requested again
with growing pauses.

Source: staging/src/k8s.io/client-go/util/certificate/certificate_manager.go, Kubernetes 1.33.
Departure: the life begins when the certificate was obtained, since signers date the beginning of
its validity back by five minutes, and short certificates would be due at once.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import random
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.x509.oid import NameOID

from kcm import errors
from kcm.clock import Clock
from kcm.kubelet.certificates.store import Certificate, CertificateStore

# --- Requests certificates by CertificateSigningRequests, and waits until they are issued.
#
# Source: staging/src/k8s.io/client-go/util/certificate/csr/csr.go, Kubernetes 1.33.


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


log = structlog.get_logger("kcm.kubelet")

_EARLIEST, _SPREAD = 0.7, 0.2  # of a certificate's life
_BACK_OFF = (2.0, 4.0, 8.0, 16.0, 32.0)  # seconds after failures; the last one is repeated
_BACK_OFF_JITTER = 0.1
_LOOK_EVERY = 10.0  # seconds between looks at the clock and at the template


class RotationMetrics(Protocol):
    """Records what upstream's metrics show about one certificate."""

    def set_expiry(self, not_after: datetime | None) -> None: ...

    def observe_rotation(self, age: float) -> None:
        """Records the age in seconds of a certificate that was replaced."""
        ...

    def count_error(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class CertificateManager:
    """Keeps the newest certificate of a store young.

    `template` returns what it shall say, None while that is not known. `rotated` is called after
    each new certificate.
    """

    store: CertificateStore
    template: Callable[[], Template | None]
    requester: Requester
    rotated: Callable[[], None]
    metrics: RotationMetrics
    clock: Clock
    random: random.Random

    def run(self, stop: threading.Event) -> None:
        """Rotates the certificate until `stop` is set."""
        current = self.store.read_current()
        self.metrics.set_expiry(current.not_after if current else None)
        deadline = self.next_rotation(current)
        failures = 0
        while not stop.is_set():
            template = self.template()
            if template is None or not self._is_due(current, deadline, template):
                left = (deadline - self.clock.now()).total_seconds()
                self.clock.wait(stop, min(max(left, 0.0), _LOOK_EVERY) or _LOOK_EVERY)
                continue
            try:
                current = self.rotate(template, current)
            except errors.KcmError as error:
                self.metrics.count_error()
                log.warning("Certificate request failed", error=str(error), name=template.signer)
                self.clock.wait(stop, self._back_off(failures))
                failures += 1
                continue
            failures, deadline = 0, self.next_rotation(current)

    def rotate(self, template: Template, old: Certificate | None) -> Certificate:
        """Gets a new certificate, and makes it the newest.

        Raises ApiError, ConfigurationError, RefusedRequest and Temporary.
        """
        key = new_key()
        pem = self.requester.request(template, key)
        now = self.clock.now()
        new = self.store.write(pem, encode_key(key), now)
        if old is not None:
            self.metrics.observe_rotation((now - old.not_before).total_seconds())
        self.metrics.set_expiry(new.not_after)
        log.info("Certificate rotated", name=new.common_name, not_after=f"{new.not_after}")
        self.rotated()
        return new

    def next_rotation(self, current: Certificate | None) -> datetime:
        """Returns when a certificate is to be replaced, now if there is none."""
        if current is None:
            return self.clock.now()
        begin = max(current.not_before, min(current.obtained, current.not_after))
        share = _EARLIEST + _SPREAD * self.random.random()
        return begin + timedelta(seconds=(current.not_after - begin).total_seconds() * share)

    def _is_due(self, current: Certificate | None, deadline: datetime, template: Template) -> bool:
        if current is None or self.clock.now() >= deadline:
            return True
        return current.common_name != template.common_name or not template.hosts <= current.hosts

    def _back_off(self, failures: int) -> float:
        seconds = _BACK_OFF[min(failures, len(_BACK_OFF) - 1)]
        return seconds * (1 + _BACK_OFF_JITTER * self.random.random())
