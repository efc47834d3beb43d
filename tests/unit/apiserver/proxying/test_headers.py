"""Which headers a proxied request and its response keep."""

from __future__ import annotations

import pytest

from kcm.apiserver.proxying import headers

RawFields = list[tuple[bytes, bytes]]


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ([(b"Accept", b"*/*")], [("accept", "*/*")]),
        ([(b"cookie", b"a=b"), (b"cookie", b"c=d")], [("cookie", "a=b"), ("cookie", "c=d")]),
        ([(b"Authorization", b"Bearer x")], []),
        ([(b"impersonate-user", b"a"), (b"impersonate-extra-x", b"b")], []),
        ([(b"x-remote-user", b"admin"), (b"x-remote-extra-a", b"b")], []),
        ([(b"connection", b"keep-alive, X-Mine"), (b"x-mine", b"1"), (b"keep-alive", b"5")], []),
        ([(b"te", b"trailers"), (b"trailer", b"x"), (b"proxy-authorization", b"x")], []),
        ([(b"transfer-encoding", b"chunked"), (b"expect", b"100-continue")], []),
        ([(b"x-forwarded-uri", b"/wrong")], []),
        ([(b"host", b"api:6443")], [("host", "api:6443")]),
    ],
)
def test_a_request_keeps_what_is_no_ones_between(
    given: RawFields, passed: list[tuple[str, str]]
) -> None:
    sent = headers.of_request([*given, (b"user-agent", b"curl")], "10.0.0.9", "/api/x")
    added = [("user-agent", "curl"), ("x-forwarded-uri", "/api/x")]
    closing = [("x-forwarded-for", "10.0.0.9"), ("connection", "close")]
    assert sent == [*passed, *added, *closing]


def test_the_clients_address_is_added_to_those_before_it() -> None:
    sent = dict(headers.of_request([(b"x-forwarded-for", b"1.1.1.1")], "10.0.0.9", "/"))
    assert sent["x-forwarded-for"] == "1.1.1.1, 10.0.0.9"


def test_an_upgrade_keeps_its_headers_but_no_token() -> None:
    given = [
        (b"connection", b"Upgrade"), (b"upgrade", b"websocket"), (b"content-length", b"0"),
        (b"sec-websocket-protocol", b"base64url.bearer.authorization.k8s.io.eA, chat"),
        (b"authorization", b"Bearer x"),
    ]  # fmt: skip
    assert headers.of_upgrade(given, "") == [
        ("sec-websocket-protocol", "chat"), ("connection", "Upgrade"), ("upgrade", "websocket"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "given", "passed"),
    [
        (200, [("Content-Type", "a/b"), ("Content-Length", "3")],
         [("content-type", "a/b"), ("content-length", "3")]),
        (200, [("Transfer-Encoding", "chunked"), ("Content-Length", "3")], []),
        (304, [("Content-Length", "3"), ("ETag", "x")], [("etag", "x")]),
        (200, [("Set-Cookie", "a"), ("Set-Cookie", "b")],
         [("set-cookie", "a"), ("set-cookie", "b")]),
        (200, [("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Headers", "x"),
               ("Access-Control-Allow-Methods", "x"), ("Access-Control-Allow-Credentials", "x")],
         []),
        (200, [("Connection", "close, Foo"), ("foo", "1"), ("Keep-Alive", "1")], []),
        (200, [("bad name", "1"), ("a", "b\x00")], []),
    ],
)  # fmt: skip
def test_a_response_keeps_what_clients_may_see(
    status: int, given: list[tuple[str, str]], passed: list[tuple[str, str]]
) -> None:
    assert headers.of_response(status, given) == passed
