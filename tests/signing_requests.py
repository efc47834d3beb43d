"""Builds certificate signing requests and authorities for tests."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kcm.api.certificates_v1 import CertificateSigningRequest, CertificateSigningRequestSpec
from kcm.apimachinery.meta_v1 import ObjectMeta

_PEM = serialization.Encoding.PEM


def build_pem_request(
    name: str = "alice",
    organizations: Sequence[str] = (),
    *,
    hosts: Sequence[str] = (),
    addresses: Sequence[str] = (),
    emails: Sequence[str] = (),
    uris: Sequence[str] = (),
    others: Sequence[x509.GeneralName] = (),
) -> bytes:
    """Returns a certificate signing request in PEM, signed with a new key."""
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    attributes += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
    names: list[x509.GeneralName] = [
        *map(x509.DNSName, hosts),
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
        *map(x509.RFC822Name, emails),
        *map(x509.UniformResourceIdentifier, uris),
        *others,
    ]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(_PEM)


def encode(pem: bytes) -> str:
    """Returns bytes as they are in the JSON of an object."""
    return base64.b64encode(pem).decode()


def signing_request(
    pem: bytes, usages: Sequence[str], signer: str, **spec: Any
) -> CertificateSigningRequest:
    """Returns a CertificateSigningRequest called `csr`."""
    return CertificateSigningRequest(
        metadata=ObjectMeta(
            name="csr", uid="u1", creation_timestamp=datetime(2024, 1, 1, tzinfo=UTC)
        ),
        spec=CertificateSigningRequestSpec(
            request=encode(pem), usages=list(usages), signer_name=signer, **spec
        ),
    )


def write_authority(folder: Path, now: datetime, days: int = 3650) -> tuple[Path, Path]:
    """Writes the certificate and key of a new authority, and returns their paths."""
    certificate, private = build_pem_authority(now, days)
    paths = folder / "ca.crt", folder / "ca.key"
    paths[0].write_bytes(certificate)
    paths[1].write_bytes(private)
    return paths


def build_pem_authority(
    now: datetime | None = None, days: int = 3650, *, is_authority: bool | None = True
) -> tuple[bytes, bytes]:
    """Returns the certificate and key of a new authority in PEM.

    `is_authority` is its basic constraint; with None it has none.
    """
    now = now or datetime(2024, 1, 1, tzinfo=UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test-ca")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=days))
    )
    if is_authority is not None:
        constraints = x509.BasicConstraints(ca=is_authority, path_length=None)
        builder = builder.add_extension(constraints, critical=True)
    form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(_PEM)
    return certificate, key.private_bytes(_PEM, form, encryption)
