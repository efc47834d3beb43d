"""The API server's token, certificate and kubeconfig, which are generated into the state folder.

kubectl sends a bearer token over TLS only, so TLS is the default. The certificate is self-signed
and generated here; the kubeconfig trusts no other.
"""

from __future__ import annotations

import base64
import fcntl
import inspect
import ipaddress
import os
import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kcm import errors
from kcm.apiserver.auth.token_options import KEY_FILE
from kcm.helpers.authority import identify_key
from kcm.helpers.serviceaccount.tokens import ensure_key_file

_LOCK_FILE = "credentials.lock"
_VALID = timedelta(days=365)
_AUTHORITY_VALID = timedelta(days=3650)
_RENEW_BEFORE = timedelta(days=30)
_ALWAYS = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC))
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of the curve P-256
_NAMES = ("localhost",)
_ADDRESSES = ("127.0.0.1", "::1")
_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class Certificate:
    """The paths of a certificate and its private key."""

    certificate: Path
    key: Path


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Holds the lock on the files of `folder` meanwhile, so that several servers that share it make
    each of them once. Raises ConfigurationError.
    """
    path = folder / _LOCK_FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise errors.ConfigurationError(f"the lock file {path}: {error}") from error
    with os.fdopen(handle, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def load_token(path: Path) -> str:
    """Returns the token in a file. If the file is missing, it is created with a random token.

    Only the owner may read the file. Raises ConfigurationError.
    """
    try:
        if not path.exists():
            _write_private(path, secrets.token_urlsafe(32) + "\n")
        text = path.read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise errors.ConfigurationError(f"the token file {path}: {error}") from error
    if not text:
        raise errors.ConfigurationError(f"the token file {path} is empty: write one, or delete it")
    return text


def certificate(
    folder: Path,
    hosts: Sequence[str] = (),
    stem: str = "apiserver",
    *,
    rng: random.Random | None = None,
) -> Certificate:
    """Returns a server's certificate in `folder`, generated or renewed if necessary.

    `hosts` are further names and addresses that it has to contain. It is its own authority. With
    `rng`, it is drawn from there, for tests only. Raises ConfigurationError.
    """
    files = Certificate(folder / f"{stem}.crt", folder / f"{stem}.key")
    try:
        if not _is_usable(files, hosts):
            _make(files, hosts, rng)
    except OSError as error:
        raise errors.ConfigurationError(f"the certificate in {folder}: {error}") from error
    return files


def draw_authorities(folder: Path, hosts: Sequence[str], rng: random.Random) -> None:
    """Makes the certificates in `folder` that objects show, all drawn from `rng`, for tests only.

    `hosts` are further ones for the server's certificate. Raises ConfigurationError.
    """
    _load_authority(folder, "ca", "kcm-ca", rng)
    _load_authority(folder, "front-proxy-ca", "front-proxy-ca", rng)
    certificate(folder, hosts, rng=rng)


def load_authority(folder: Path) -> Certificate:
    """Returns the cluster's certificate authority in `folder`, which is generated if it is missing.

    It signs client certificates and those of kubelets. Raises ConfigurationError.
    """
    return _load_authority(folder, "ca", "kcm-ca")


def ensure_manager_files(folder: Path, hosts: Sequence[str] = ()) -> Mapping[str, Path]:
    """Returns the files that a controller manager beside the server needs, by its flags' names.

    Those that are missing in the state folder are generated; `hosts` are further ones for the
    server's certificate. Raises ConfigurationError.
    """
    key, authority = folder / KEY_FILE, load_authority(folder)
    ensure_key_file(key)
    return {
        "root-ca-file": certificate(folder, hosts).certificate,
        "service-account-private-key-file": key,
        "cluster-signing-cert-file": authority.certificate,
        "cluster-signing-key-file": authority.key,
    }


def _load_authority(
    folder: Path, stem: str, name: str, rng: random.Random | None = None
) -> Certificate:
    files = Certificate(folder / f"{stem}.crt", folder / f"{stem}.key")
    try:
        if not (files.certificate.exists() and files.key.exists()):
            key = _draw_key(rng)
            constraints = x509.BasicConstraints(ca=True, path_length=None)
            subject = _name(name)
            made = (
                _builder(subject, key, constraints, _AUTHORITY_VALID, rng)
                .issuer_name(subject)
                .add_extension(_SIGNS_CERTIFICATES, critical=True)
                .add_extension(
                    x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
                )
                .sign(key, hashes.SHA256(), **_choose_signing(rng))
            )
            _write(files, key, made)
    except OSError as error:
        raise errors.ConfigurationError(f"the authority in {folder}: {error}") from error
    return files


@dataclass(frozen=True)
class FrontProxy:
    """The authority by which other API servers know this one, and the certificate it has signed."""

    authority: Path
    client: Certificate


def front_proxy(folder: Path) -> FrontProxy:
    """Returns the front proxy's files in `folder`, which are generated if they are missing.

    The authority is not that of clients: whoever has its key can act as any user with other API
    servers. Raises ConfigurationError.
    """
    authority = _load_authority(folder, "front-proxy-ca", "front-proxy-ca")
    client = _client(folder, authority, "front-proxy-client", _name("front-proxy-client"))
    return FrontProxy(authority.certificate, client)


def kubelet_client(folder: Path, authority: Certificate) -> Certificate:
    """Returns the certificate by which kubelets know the API server, signed by the authority.

    It is valid for a year, and made again when that ends soon. Raises ConfigurationError.
    """
    stem, groups = "apiserver-kubelet-client", ["system:masters"]
    return ensure_user_certificate(folder, authority, stem, "kube-apiserver-kubelet-client", groups)


def ensure_user_certificate(
    folder: Path, authority: Certificate, stem: str, user: str, groups: Sequence[str]
) -> Certificate:
    """Returns a certificate by which the API server knows a user in groups. Raises
    ConfigurationError.
    """
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    return _client(folder, authority, stem, subject)


def _client(folder: Path, authority: Certificate, stem: str, subject: x509.Name) -> Certificate:
    """Returns a client certificate, which is made if there is none that is valid for long."""
    files = Certificate(folder / f"{stem}.crt", folder / f"{stem}.key")
    try:
        issuer = x509.load_pem_x509_certificate(authority.certificate.read_bytes())
        if _is_signed_by(files, issuer):
            return files
        signer = serialization.load_pem_private_key(authority.key.read_bytes(), None)
        if not isinstance(signer, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise ValueError(f"{authority.key} has no key of RSA or ECDSA")
        key = ec.generate_private_key(ec.SECP256R1())
        made = (
            _builder(subject, key, x509.BasicConstraints(ca=False, path_length=None), _VALID)
            .issuer_name(issuer.subject)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .add_extension(identify_key(issuer), critical=False)
            .sign(signer, hashes.SHA256())
        )
        _write(files, key, made)
    except (OSError, ValueError, TypeError) as error:
        raise errors.ConfigurationError(f"the certificates in {folder}: {error}") from error
    return files


def write_client_authorities(folder: Path, *files: Path) -> Path:
    """Writes the certificates of several authorities into one file, and returns its path.

    Raises ConfigurationError.
    """
    path = folder / "client-ca.crt"
    try:
        _write_private(path, "\n".join(file.read_text("ascii").strip() for file in files) + "\n")
    except (OSError, UnicodeError) as error:
        raise errors.ConfigurationError(f"{path}: {error}") from error
    return path


def _is_signed_by(files: Certificate, issuer: x509.Certificate) -> bool:
    """Reports whether there is a certificate of this issuer that does not end soon."""
    if not (files.certificate.exists() and files.key.exists()):
        return False
    try:
        parsed = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        parsed.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return parsed.not_valid_after_utc - _RENEW_BEFORE > datetime.now(UTC)


def _is_usable(files: Certificate, hosts: Sequence[str]) -> bool:
    if not (files.certificate.exists() and files.key.exists()):
        return False
    try:
        parsed = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    fresh = parsed.not_valid_after_utc - _RENEW_BEFORE > datetime.now(UTC)
    return fresh and all(name in names for name in _alternatives(hosts))


def _draw_key(rng: random.Random | None) -> ec.EllipticCurvePrivateKey:
    if rng is None:
        return ec.generate_private_key(ec.SECP256R1())
    return ec.derive_private_key(rng.randrange(1, _ORDER), ec.SECP256R1())


def _choose_signing(rng: random.Random | None) -> dict[str, Any]:
    """Returns what makes a signature the same each time, where cryptography can do so."""
    parameters = inspect.signature(x509.CertificateBuilder.sign).parameters
    deterministic = "ecdsa_deterministic"
    return {deterministic: True} if rng is not None and deterministic in parameters else {}


def _make(files: Certificate, hosts: Sequence[str], rng: random.Random | None) -> None:
    key = _draw_key(rng)
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    name = _name("kcm-apiserver")
    made = (
        _builder(name, key, constraints, _VALID, rng)
        .issuer_name(name)
        .add_extension(x509.SubjectAlternativeName(_alternatives(hosts)), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256(), **_choose_signing(rng))
    )
    _write(files, key, made)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    name: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    constraints: x509.BasicConstraints,
    valid: timedelta,
    rng: random.Random | None = None,
) -> x509.CertificateBuilder:
    """Returns the builder of a certificate, without its issuer."""
    now = datetime.now(UTC)
    serial, begin, end = x509.random_serial_number(), now - timedelta(minutes=5), now + valid
    if rng is not None:  # clients go by the machine's clock, whatever that of the test says
        serial, begin, end = rng.getrandbits(150) + 1, *_ALWAYS
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(begin)  # allows for clocks that differ
        .not_valid_after(end)
        .add_extension(constraints, critical=True)
    )


def _write(files: Certificate, key: ec.EllipticCurvePrivateKey, made: x509.Certificate) -> None:
    """Writes a key and its certificate."""
    encoded = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    _write_private(files.key, encoded.decode())
    files.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))


def _alternatives(hosts: Sequence[str]) -> list[x509.GeneralName]:
    return [_general(host) for host in dict.fromkeys((*_NAMES, *_ADDRESSES, *hosts))]


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def write_kubeconfig(path: Path, url: str, user: str | Certificate, authority: Path | None) -> None:
    """Writes a kubeconfig with one server and one user, who has a token or a certificate. Only the
    owner may read it.

    `authority` is the certificate to trust, None for a server without TLS.
    """
    known_by = {"token": user} if user else {}
    if isinstance(user, Certificate):
        known_by = {"client-certificate-data": _encode(user.certificate)}
        known_by["client-key-data"] = _encode(user.key)
    cluster: dict[str, object] = {"server": url}
    if authority is not None:
        cluster["certificate-authority-data"] = _encode(authority)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kcm", "cluster": cluster}],
        "users": [{"name": "kcm", "user": known_by}],
        "contexts": [{"name": "kcm", "context": {"cluster": "kcm", "user": "kcm"}}],
        "current-context": "kcm",
    }
    _write_private(path, yaml.safe_dump(config, sort_keys=False))


def _encode(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _write_private(path: Path, text: str) -> None:
    """Replaces a file atomically. At no time can anybody but the owner read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Processes in containers that share the folder may have the same id.
    partial = path.with_name(f"{path.name}.{secrets.token_hex(8)}.partial")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
    partial.replace(path)
