"""What is trusted, and what is shown."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path

import pytest

from kcm.apiserver import credentials
from kcm.http.faults import CallFailed
from kcm.http.trust import Trust, build_context, find_context, read_bundle


@pytest.fixture
def authority(tmp_path: Path) -> bytes:
    return credentials.load_authority(tmp_path).certificate.read_bytes()


def test_a_bundle_is_all_that_is_trusted(authority: bytes) -> None:
    context = build_context(Trust(read_bundle(base64.b64encode(authority).decode())))
    assert len(context.get_ca_certs()) == 1
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


@pytest.mark.parametrize("bundle", ["%", base64.b64encode(b"no certificate").decode()])
def test_a_damaged_bundle_trusts_nobody(bundle: str) -> None:
    with pytest.raises(CallFailed, match="unable to load root certificates"):
        build_context(Trust(read_bundle(bundle)))


def test_any_certificate_is_accepted_only_if_that_is_asked_for() -> None:
    context = build_context(Trust(insecure=True))
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)


def test_a_certificate_without_its_key_is_not_shown(authority: bytes) -> None:
    with pytest.raises(CallFailed):
        build_context(Trust(certificate=authority))


def test_the_same_trust_has_the_same_context(authority: bytes) -> None:
    assert find_context(Trust(authority)) is find_context(Trust(bytes(bytearray(authority))))
    assert find_context(Trust(authority)) is not find_context(Trust(insecure=True))
    assert build_context(Trust(authority)) is not build_context(Trust(authority))
