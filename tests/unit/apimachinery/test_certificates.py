"""Certificates and signing requests, in bytes of strangers."""

from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kcm.apimachinery.certificates import (
    check_certificates,
    check_signature,
    parse_request,
    read_expiry,
)
from tests.signing_requests import build_pem_request, encode

HEAD, END = b"-----BEGIN CERTIFICATE REQUEST-----\n", b"-----END CERTIFICATE REQUEST-----\n"
DER = base64.b64decode(b"".join(build_pem_request(hosts=["a.example"]).split(b"\n")[1:-2]))


def encode_der(der: bytes) -> str:
    """Returns a signing request as it is in the JSON of an object."""
    return encode(HEAD + base64.encodebytes(der) + END)


def test_a_request_says_who_asks_and_for_which_names() -> None:
    pem = build_pem_request(
        "alice", ["devs", "ops"], hosts=["a.example"], addresses=["10.0.0.1", "::1"],
        emails=["a@example.com"], uris=["spiffe://a"],
    )  # fmt: skip
    request = parse_request(encode(b"a comment\n" + pem))
    check_signature(request)
    assert (request.common_name, request.organizations) == ("alice", ("devs", "ops"))
    assert (request.dns_names, request.addresses) == (("a.example",), ("10.0.0.1", "::1"))
    assert (request.emails, request.uris) == (("a@example.com",), ("spiffe://a",))


@given(st.lists(st.tuples(st.integers(0, len(DER) - 1), st.integers(0, 255))))
@example([])
def test_what_was_changed_after_its_signature_is_a_value_error(
    changes: list[tuple[int, int]],
) -> None:
    der = bytearray(DER)
    for place, byte in changes:
        der[place] = byte
    try:
        request = parse_request(encode_der(bytes(der)))
        check_signature(request)
    except ValueError:
        assert der != DER
    else:
        whole = parse_request(encode_der(DER)).parsed.tbs_certrequest_bytes
        assert request.parsed.tbs_certrequest_bytes == whole


def test_an_unknown_version_is_a_value_error() -> None:
    der = bytearray(DER)
    version = der.index(b"\x02\x01\x00")  # the first INTEGER 0
    der[version + 2] = 7
    with pytest.raises(ValueError, match="is not a valid CSR version"):
        parse_request(encode_der(bytes(der)))


@pytest.mark.parametrize("text", ["", "%", encode(b"hello"), encode_der(b""), encode_der(b"\x30")])
def test_other_bytes_are_value_errors(text: str) -> None:
    for read in (parse_request, check_certificates, read_expiry):
        with pytest.raises(ValueError, match=r"."):
            read(text)


def test_only_blocks_of_certificates_are_accepted() -> None:
    with pytest.raises(ValueError, match='only CERTIFICATE PEM blocks are allowed, found "KEY"'):
        check_certificates(encode(b"-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n"))
    with pytest.raises(ValueError, match="at least one CERTIFICATE PEM block"):
        check_certificates(encode(b"nothing"))
