"""A certificate authority for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_SIGNS_CERTIFICATES = x509.KeyUsage(
    key_cert_sign=True,
    **dict.fromkeys(("digital_signature", "content_commitment", "crl_sign"), False),
    **dict.fromkeys(("key_encipherment", "data_encipherment", "key_agreement"), False),
    **dict.fromkeys(("encipher_only", "decipher_only"), False),
)


class Authority:
    """Signs client certificates. The authority's own certificate is in `path`."""

    def __init__(self, folder: Path, name: str = "people") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key, timedelta(days=1))
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_SIGNS_CERTIFICATES, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path = folder / f"{name}.crt"
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def client(
        self, user: str, *groups: str, days: float = 1, server: bool = False
    ) -> tuple[str, str]:
        """Returns the files of a user's certificate and key."""
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = self._builder(subject, key, timedelta(days=days))
        certificate_builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        return self._write(user, key, certificate_builder.sign(self._key, hashes.SHA256()))

    def _write(
        self, name: str, key: ec.EllipticCurvePrivateKey, signed: x509.Certificate
    ) -> tuple[str, str]:
        files = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        files[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return str(files[0]), str(files[1])

    def server(self, *names: str, days: float = 1) -> tuple[str, str]:
        """Returns the files of a server's certificate, which is for these names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        signed = (
            self._builder(subject, key, timedelta(days=days))
            .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
            .sign(self._key, hashes.SHA256())
        )
        return self._write(names[0], key, signed)

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, valid: timedelta
    ) -> x509.CertificateBuilder:
        """Strict clients, as Python's are since 3.13, want both identifiers of keys."""
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=2))
            .not_valid_after(now + valid)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False
            )
        )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
