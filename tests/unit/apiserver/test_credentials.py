from __future__ import annotations

import base64
import inspect
import random
import ssl
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kcm import errors
from kcm.apimachinery.certificates import parse_request
from kcm.apiserver import credentials
from kcm.helpers.authority import load_authority


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_token_is_made_once_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "token"
    text = credentials.load_token(path)
    assert len(text) > 30
    assert mode(path) == 0o600
    assert credentials.load_token(path) == text


def test_an_empty_or_unreadable_token_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("\n")
    with pytest.raises(errors.ConfigurationError, match="is empty"):
        credentials.load_token(path)
    with pytest.raises(errors.ConfigurationError, match="token file"):
        credentials.load_token(tmp_path)


def test_the_certificate_is_kept_until_it_does_not_fit(tmp_path: Path) -> None:
    files = credentials.certificate(tmp_path)
    first = files.certificate.read_bytes()
    assert mode(files.key) == 0o600
    assert credentials.certificate(tmp_path).certificate.read_bytes() == first
    credentials.certificate(tmp_path, ["kcm.example", "10.0.0.1"])
    second = files.certificate.read_bytes()
    assert second != first
    files.certificate.write_text("rubbish")
    credentials.certificate(tmp_path)
    ssl.create_default_context(cafile=str(files.certificate))


def test_servers_that_share_a_folder_make_each_file_once(tmp_path: Path) -> None:
    barrier = threading.Barrier(4)

    def begin(_: int) -> tuple[str, bytes, bytes]:
        barrier.wait(10)
        with credentials.lock(tmp_path / "state"):
            token = credentials.load_token(tmp_path / "state" / "token")
            authority = credentials.load_authority(tmp_path / "state")
            served = credentials.certificate(tmp_path / "state")
            return token, authority.key.read_bytes(), served.certificate.read_bytes()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(begin, range(4)))) == 1


def test_the_kubeconfig_has_token_and_authority(tmp_path: Path) -> None:
    files = credentials.certificate(tmp_path)
    path = tmp_path / "kubeconfig"
    credentials.write_kubeconfig(path, "https://127.0.0.1:8001", "secret", files.certificate)
    assert mode(path) == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["users"][0]["user"] == {"token": "secret"}
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:8001"
    assert config["clusters"][0]["cluster"]["certificate-authority-data"]


def test_strict_clients_trust_what_the_authority_signs(tmp_path: Path) -> None:
    authority = credentials.load_authority(tmp_path)
    shown = credentials.kubelet_client(tmp_path, authority)
    signer = load_authority(str(authority.certificate), str(authority.key))
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    asked = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("n1")]), critical=True)
    pem = asked.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    root = x509.load_pem_x509_certificate(authority.certificate.read_bytes())
    assert root.extensions.get_extension_for_class(x509.BasicConstraints).critical
    assert root.extensions.get_extension_for_class(x509.KeyUsage).critical
    request = parse_request(base64.b64encode(pem).decode())
    issued = signer.sign(request, ["server auth"], timedelta(hours=1), datetime.now(UTC))
    serving = tmp_path / "serving.pem"
    serving.write_bytes(
        issued
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    client = ssl.create_default_context(cafile=str(authority.certificate))
    client.load_cert_chain(shown.certificate, shown.key)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    server.load_cert_chain(serving)
    server.verify_mode = ssl.CERT_REQUIRED
    for context in (client, server):
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default since Python 3.13
    shake_hands(client, server, "n1")


def test_what_is_drawn_from_one_seed_is_the_same_each_time(tmp_path: Path) -> None:
    drawn: list[dict[str, bytes]] = []
    for seed in (1, 1, 2):
        folder = tmp_path / str(len(drawn))
        credentials.draw_authorities(folder, ["h"], random.Random(seed))
        drawn.append({path.name: read_drawn(path) for path in folder.iterdir()})
    assert drawn[0] == drawn[1]
    assert drawn[0]["ca.crt"] != drawn[2]["ca.crt"]


def read_drawn(path: Path) -> bytes:
    """Returns a file, or what a certificate says where `cryptography` signs at random."""
    given = path.read_bytes()
    known = inspect.signature(x509.CertificateBuilder.sign).parameters
    if path.suffix != ".crt" or "ecdsa_deterministic" in known:
        return given
    return x509.load_pem_x509_certificate(given).tbs_certificate_bytes


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> None:
    """Opens a connection in memory. Raises SSLError if one side does not trust the other."""
    sent, received = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(received, sent, server_hostname=name),
        server.wrap_bio(sent, received, server_side=True),
    ]
    while sides:
        for side in list(sides):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
                sides.remove(side)
