"""The files of a certificate that rotates.

Each certificate is in one file with its key, `PREFIX-DATE.pem`, and the link `PREFIX-current.pem`
leads to the newest. Only the owner can read them.

Source: staging/src/k8s.io/client-go/util/certificate/certificate_store.go, Kubernetes 1.33.
Departure: files of earlier certificates are removed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID

from kcm import errors

CLIENT, SERVER = "kubelet-client", "kubelet-server"  # prefixes


@dataclass(frozen=True)
class Certificate:
    """The properties of a certificate on which its rotation depends.

    `obtained` is when it was stored here.
    """

    common_name: str
    not_before: datetime
    obtained: datetime
    not_after: datetime
    hosts: frozenset[str]  # DNS names and addresses


class CertificateStore:
    """The certificates of one purpose in a folder."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder = folder
        self._prefix = prefix

    @property
    def current_path(self) -> Path:
        """The link to the newest certificate and its key."""
        return self._folder / f"{self._prefix}-current.pem"

    def read_current(self) -> Certificate | None:
        """Returns the newest certificate, None if there is none with a key that fits."""
        try:
            pem = self.current_path.read_bytes()
            obtained = datetime.fromtimestamp(self.current_path.stat().st_mtime, UTC)
            return _describe(_load_pair(pem, pem), obtained)
        except (OSError, ValueError, TypeError):
            return None

    def write(self, certificate: bytes, key: bytes, now: datetime) -> Certificate:
        """Makes a certificate and its key, both in PEM, the newest.

        Raises ConfigurationError, also for a certificate that is not the key's; then the newest
        stays as it is.
        """
        target = self._folder / f"{self._prefix}-{now:%Y-%m-%d-%H-%M-%S}.pem"
        link = self._folder / f".{self._prefix}-current.{os.getpid()}"
        try:
            described = _describe(_load_pair(certificate, key), now)
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                target.unlink()
            write_private(target, certificate.rstrip() + b"\n" + key)
            os.utime(target, (now.timestamp(), now.timestamp()))
            with suppress(FileNotFoundError):
                link.unlink()
            link.symlink_to(target.name)
            link.replace(self.current_path)
        except (OSError, ValueError, TypeError) as error:
            raise errors.ConfigurationError(f"the certificate {target}: {error}") from error
        self._remove_old(target)
        return described

    def _remove_old(self, newest: Path) -> None:
        """Removes all files but the newest: old keys are of no use to anybody but thieves."""
        for path in self._folder.glob(f"{self._prefix}-[0-9]*.pem"):
            if path != newest:
                with suppress(OSError):
                    path.unlink()


def write_private(path: Path, content: bytes) -> None:
    """Creates a file that only its owner can read. Raises OSError if it exists."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(content)


def _load_pair(certificate: bytes, key: bytes) -> x509.Certificate:
    """Returns a certificate in PEM. Raises ValueError and TypeError unless the key is its own."""
    parsed = x509.load_pem_x509_certificate(certificate)
    if load_pem_private_key(key, None).public_key() != parsed.public_key():
        raise ValueError("the certificate is not that of the key")
    return parsed


def _describe(parsed: x509.Certificate, obtained: datetime) -> Certificate:
    names = parsed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    try:
        hosts = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        hosts = x509.SubjectAlternativeName([])
    dns_names = hosts.get_values_for_type(x509.DNSName)
    addresses = hosts.get_values_for_type(x509.IPAddress)
    return Certificate(
        str(names[0].value) if names else "",
        parsed.not_valid_before_utc,
        obtained,
        parsed.not_valid_after_utc,
        frozenset({*dns_names, *map(str, addresses)}),
    )
