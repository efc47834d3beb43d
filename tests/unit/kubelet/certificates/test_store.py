"""The files of certificates."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kcm import errors
from kcm.kubelet.certificates.bootstrap import client_template
from kcm.kubelet.certificates.manager import build_request, encode_key, new_key
from kcm.kubelet.certificates.store import CLIENT, CertificateStore
from tests.unit.kubelet.certificates.signing_server import SigningServer

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pair(node: str = "n1") -> tuple[bytes, bytes]:
    key = new_key()
    request = base64.b64encode(build_request(client_template(node), key)).decode()
    signed = SigningServer(lambda: NOW).sign({"spec": {"request": request}})
    return base64.b64decode(signed), encode_key(key)


def test_the_link_leads_to_the_newest_and_old_keys_are_removed(tmp_path: Path) -> None:
    store = CertificateStore(tmp_path / "pki", CLIENT)
    assert store.read_current() is None
    store.write(*pair("n1"), NOW)
    store.write(*pair("n2"), NOW + timedelta(hours=1))
    current = store.read_current()
    assert current is not None
    assert current.common_name == "system:node:n2"
    assert current.obtained == NOW + timedelta(hours=1)
    names = sorted(path.name for path in (tmp_path / "pki").iterdir())
    assert names == ["kubelet-client-2026-01-01-01-00-00.pem", "kubelet-client-current.pem"]
    assert store.current_path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "pki").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["cut", "other key", "nothing"])
def test_a_damaged_file_is_no_certificate(tmp_path: Path, damage: str) -> None:
    store = CertificateStore(tmp_path, CLIENT)
    certificate, key = pair()
    store.write(certificate, key, NOW)
    text = {"cut": certificate[:40], "other key": certificate + pair()[1], "nothing": b""}[damage]
    store.current_path.write_bytes(text)
    assert store.read_current() is None


def test_what_is_no_certificate_is_not_stored(tmp_path: Path) -> None:
    store = CertificateStore(tmp_path, CLIENT)
    with pytest.raises(errors.ConfigurationError):
        store.write(b"nonsense", pair()[1], NOW)
    assert store.read_current() is None


def test_a_certificate_of_another_key_does_not_take_the_place_of_the_newest(tmp_path: Path) -> None:
    store = CertificateStore(tmp_path, CLIENT)
    store.write(*pair("n1"), NOW)
    with pytest.raises(errors.ConfigurationError, match="not that of the key"):
        store.write(pair("n2")[0], pair("n2")[1], NOW + timedelta(hours=1))
    current = store.read_current()
    assert current is not None
    assert current.common_name == "system:node:n1"
