"""X.509 certificates and certificate signing requests, as PEM in base64 in the JSON of objects.

The library is imported on first use, since most processes never see a certificate.
Source: pkg/apis/certificates/helpers.go and validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509

_BLOCK = re.compile(
    rb"-----BEGIN (?P<label>[A-Z0-9 ]+)-----\s*\n(?P<body>[^-]*)-----END (?P=label)-----"
)
_REQUEST, _CERTIFICATE = b"CERTIFICATE REQUEST", b"CERTIFICATE"


@dataclass(frozen=True)
class CertificateRequest:
    """A parsed certificate signing request."""

    parsed: x509.CertificateSigningRequest
    common_name: str
    organizations: tuple[str, ...]
    dns_names: tuple[str, ...]
    addresses: tuple[str, ...]
    emails: tuple[str, ...]
    uris: tuple[str, ...]


def parse_request(encoded: str) -> CertificateRequest:
    """Returns the signing request in a base64 PEM block.

    Raises ValueError, with upstream's words where it has some, for anything else.
    """
    from cryptography import x509  # noqa: PLC0415 - see above
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - see above

    block = _BLOCK.search(_decode(encoded))
    if block is None or block["label"] != _REQUEST:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    with _rejecting_bytes():
        parsed = x509.load_pem_x509_csr(block[0])
        names = parsed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        organizations = parsed.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        try:
            extension = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            extension = x509.SubjectAlternativeName([])
        return CertificateRequest(
            parsed,
            str(names[-1].value) if names else "",
            tuple(str(attribute.value) for attribute in organizations),
            tuple(extension.get_values_for_type(x509.DNSName)),
            tuple(map(str, extension.get_values_for_type(x509.IPAddress))),
            tuple(extension.get_values_for_type(x509.RFC822Name)),
            tuple(extension.get_values_for_type(x509.UniformResourceIdentifier)),
        )


def check_signature(request: CertificateRequest) -> None:
    """Raises ValueError unless the request is signed with the key that it contains."""
    with _rejecting_bytes():
        is_valid = request.parsed.is_signature_valid
    if not is_valid:
        raise ValueError("the signature of the certificate signing request is not valid")


def check_certificates(encoded: str) -> None:
    """Raises ValueError unless the base64 PEM text has certificates and no other blocks."""
    from cryptography import x509  # noqa: PLC0415 - see above

    blocks = list(_BLOCK.finditer(_decode(encoded)))
    for block in blocks:
        label = block["label"].decode()
        if block["label"] != _CERTIFICATE:
            raise ValueError(f'only CERTIFICATE PEM blocks are allowed, found "{label}"')
        if b":" in block["body"]:
            raise ValueError("no PEM block headers are permitted")
        with _rejecting_bytes():
            x509.load_pem_x509_certificate(block[0])
    if not blocks:
        raise ValueError("must contain at least one CERTIFICATE PEM block")


def read_expiry(encoded: str) -> datetime:
    """Returns the time at which the first certificate of a base64 PEM text expires.

    Raises ValueError if there is none.
    """
    from cryptography import x509  # noqa: PLC0415 - see above

    block = _BLOCK.search(_decode(encoded))
    if block is None or block["label"] != _CERTIFICATE:
        raise ValueError("expected the certificate associated with the CSR to be PEM encoded")
    with _rejecting_bytes():
        return x509.load_pem_x509_certificate(block[0]).not_valid_after_utc


@contextmanager
def _rejecting_bytes() -> Iterator[None]:
    """Raises ValueError for whatever the library raises over the bytes of a stranger.

    For some it raises TypeError, or exceptions of its own that are no ValueErrors.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - see above
        raise ValueError(str(error)) from None


def _decode(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("illegal base64 data") from None
