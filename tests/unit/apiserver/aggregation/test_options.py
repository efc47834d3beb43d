"""The flags about other API servers."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from kcm import errors
from kcm.apiserver import credentials
from kcm.apiserver.aggregation.options import AggregationFlags


def test_the_front_proxy_s_files_are_generated_once(tmp_path: Path) -> None:
    flags = AggregationFlags().complete(tmp_path)
    assert AggregationFlags().complete(tmp_path) == flags
    options = flags.load(None)
    assert flags.certificate is not None
    assert flags.key is not None
    shown = flags.certificate.read_bytes() + b"\n" + flags.key.read_bytes()
    assert options.certificate == shown
    assert options.authorities.front_proxy == tmp_path / "front-proxy-ca.crt"
    client = x509.load_pem_x509_certificate((tmp_path / "front-proxy-client.crt").read_bytes())
    [name] = client.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert name.value == "front-proxy-client"
    authority = x509.load_pem_x509_certificate((tmp_path / "front-proxy-ca.crt").read_bytes())
    client.verify_directly_issued_by(authority)
    private = ("front-proxy-ca.key", "front-proxy-client.key")
    assert {(tmp_path / file).stat().st_mode & 0o777 for file in private} == {0o600}


def test_the_authority_of_clients_has_signed_nothing_of_it(tmp_path: Path) -> None:
    clients = credentials.load_authority(tmp_path)
    proxy = credentials.front_proxy(tmp_path)
    context = ssl.create_default_context(cafile=str(clients.certificate))
    assert len(context.get_ca_certs()) == 1
    assert proxy.authority.read_bytes() != clients.certificate.read_bytes()


def test_files_that_are_given_stay(tmp_path: Path) -> None:
    made = credentials.front_proxy(tmp_path)
    given = AggregationFlags(made.client.certificate, made.client.key, None)
    assert given.complete(tmp_path / "other") == given


def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    made = credentials.front_proxy(tmp_path)
    rubbish = tmp_path / "rubbish"
    rubbish.write_text("x")
    wrong = [
        (AggregationFlags(certificate=made.client.certificate), "must be used together"),
        (AggregationFlags(key=made.client.key).complete(tmp_path), "must be used together"),
        (AggregationFlags(rubbish, made.client.key), "--proxy-client-cert-file .* cannot be used"),
        (AggregationFlags(authority=rubbish), "--requestheader-client-ca-file"),
    ]
    for flags, message in wrong:
        with pytest.raises(errors.ConfigurationError, match=message):
            flags.load(None)
