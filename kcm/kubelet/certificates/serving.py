"""The first serving certificate of a kubelet, until a signer has issued one.

Source: InitializeTLS in cmd/kubelet/app/server.go, Kubernetes 1.33.
"""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from kcm import errors
from kcm.kubelet.certificates.manager import encode_key, new_key
from kcm.kubelet.certificates.store import SERVER, CertificateStore, write_private

_VALID = timedelta(days=365)


def serving_files(cert_dir: Path, name: str, address: str, now: datetime) -> tuple[Path, Path]:
    """Returns the files of the serving certificate and its key.

    As long as there is no issued one, they are `kubelet.crt` and `kubelet.key`, which sign
    themselves, so that no API server trusts them. Raises ConfigurationError.
    """
    store = CertificateStore(cert_dir, SERVER)
    if store.read_current() is not None:
        return store.current_path, store.current_path
    certificate, key = cert_dir / "kubelet.crt", cert_dir / "kubelet.key"
    try:
        cert_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (certificate, key):
            path.unlink(missing_ok=True)
        _write_self_signed(certificate, key, name, address, now)
    except OSError as error:
        raise errors.ConfigurationError(f"--cert-dir {cert_dir}: {error.strerror}") from error
    return certificate, key


def _write_self_signed(
    certificate: Path, key_file: Path, name: str, address: str, now: datetime
) -> None:
    key = new_key()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    hosts: list[x509.GeneralName] = [
        x509.DNSName(name),
        x509.IPAddress(ipaddress.ip_address(address)),
    ]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_private(key_file, encode_key(key))
    write_private(certificate, made.public_bytes(serialization.Encoding.PEM))
