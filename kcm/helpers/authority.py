"""A certificate authority in files, which signs certificate requests.

Source: pkg/controller/certificates/authority and signer/ca_provider.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kcm.apimachinery.certificates import CertificateRequest
from kcm.errors import ConfigurationError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import (
        CertificateIssuerPrivateKeyTypes,
    )

_BACKDATE = timedelta(minutes=5)  # allows for clocks that differ
_SHORT = timedelta(hours=8)  # certificates that are valid for less lose nothing at their end

_KEY_USAGES = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_EXTENDED_USAGES = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}


@dataclass(frozen=True)
class CertificateAuthority:
    """The certificate and private key of an authority."""

    certificate: x509.Certificate
    key: CertificateIssuerPrivateKeyTypes

    def sign(
        self,
        request: CertificateRequest,
        usages: Collection[str],
        duration: timedelta,
        now: datetime,
    ) -> bytes:
        """Returns a certificate in PEM for a request, valid for `duration`.

        It has the subject, the alternative names and the key of the request, and these usages. It
        is never valid for longer than the authority's own. Raises ValueError for an authority that
        has expired.
        """
        from cryptography import x509  # noqa: PLC0415 - most processes never sign
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.ed448 import (  # noqa: PLC0415
            Ed448PrivateKey,
        )
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
            Ed25519PrivateKey,
        )

        end = self.certificate.not_valid_after_utc
        if now >= end:
            raise ValueError(f"the signer has expired: NotAfter={end}")
        parsed = request.parsed
        builder = (
            x509.CertificateBuilder()
            .subject_name(parsed.subject)
            .issuer_name(self.certificate.subject)
            .public_key(parsed.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATE)
            .not_valid_after(min(end, now + duration - _lost_by_backdating(duration)))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(identify_key(self.certificate), critical=False)
        )
        for extension, critical in _build_extensions(parsed, usages):
            builder = builder.add_extension(extension, critical=critical)
        has_own_hash = isinstance(self.key, Ed25519PrivateKey | Ed448PrivateKey)
        signed = builder.sign(self.key, None if has_own_hash else hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)


def _lost_by_backdating(duration: timedelta) -> timedelta:
    return timedelta() if duration < _SHORT else _BACKDATE


def identify_key(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """Returns the extension that names the issuer's key. Strict verifiers require it."""
    from cryptography import x509  # noqa: PLC0415 - see `sign`

    try:
        own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        key: Any = issuer.public_key()
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _build_extensions(
    parsed: x509.CertificateSigningRequest, usages: Collection[str]
) -> list[tuple[x509.ExtensionType, bool]]:
    """Returns the extensions of a certificate, each with whether it is critical.

    Of the request's own extensions only the alternative names are taken over, and of these the
    kinds that signers check.
    """
    from cryptography import x509  # noqa: PLC0415 - see `sign`

    extensions: list[tuple[x509.ExtensionType, bool]] = []
    wanted = {_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES}
    if wanted:
        every = dict.fromkeys(_KEY_USAGES.values(), False) | dict.fromkeys(wanted, True)
        if not every["key_agreement"]:  # without it, the other two mean nothing
            every |= {"encipher_only": False, "decipher_only": False}
        extensions.append((x509.KeyUsage(**every), True))
    extended = sorted({_EXTENDED_USAGES[u] for u in usages if u in _EXTENDED_USAGES})
    if extended:
        oids = [x509.ObjectIdentifier(dotted) for dotted in extended]
        extensions.append((x509.ExtendedKeyUsage(oids), False))
    try:
        asked = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return extensions
    checked = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)
    names = [name for name in asked.value if isinstance(name, checked)]
    if names:
        extensions.append((x509.SubjectAlternativeName(names), asked.critical))
    return extensions


def load_authority(certificate: str, key: str) -> CertificateAuthority:
    """Returns the authority in two PEM files. They are read again when they change.

    Raises ConfigurationError, which names the file.
    """
    return _load(certificate, _stamp(certificate), key, _stamp(key))


def _stamp(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None


@lru_cache(maxsize=8)
def _load(certificate: str, _: int, key: str, __: int) -> CertificateAuthority:
    from cryptography import x509  # noqa: PLC0415 - see `sign`
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        load_pem_private_key,
    )

    path = certificate
    try:
        parsed = x509.load_pem_x509_certificate(Path(certificate).read_bytes())
        path = key
        private = load_pem_private_key(Path(key).read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(f"{path}: {error}") from None
    if parsed.public_key() != private.public_key():
        raise ConfigurationError(f"{key} is not the private key of {certificate}")
    return CertificateAuthority(parsed, private)  # type: ignore[arg-type]  # any key that signs
