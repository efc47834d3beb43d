from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest
import yaml

from kcm import errors
from kcm.apiserver import credentials


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


def test_the_kubeconfig_has_token_and_authority(tmp_path: Path) -> None:
    files = credentials.certificate(tmp_path)
    path = tmp_path / "kubeconfig"
    credentials.write_kubeconfig(path, "https://127.0.0.1:8001", "secret", files.certificate)
    assert mode(path) == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["users"][0]["user"] == {"token": "secret"}
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:8001"
    assert config["clusters"][0]["cluster"]["certificate-authority-data"]
