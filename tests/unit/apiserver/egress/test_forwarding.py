"""Which headers a request keeps when it is passed on, and which its response keeps."""

from __future__ import annotations

import pytest

from kcm.apiserver.egress import forwarding
from kcm.apiserver.egress.forwarding import Fields

TOKEN = b"base64url.bearer.authorization.k8s.io.dG9rZW4"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([(b"Accept", b"a/b"), (b"X-Mine", b"1")], [(b"accept", b"a/b"), (b"x-mine", b"1")]),
        ([(b"Connection", b"X-Mine, close"), (b"X-Mine", b"1")], []),
        ([(b"connection", b"a"), (b"connection", b"b"), (b"a", b"1"), (b"B", b"2")], []),
        ([(b"connection", b"host, content-length"), (b"host", b"h"), (b"content-length", b"3")],
         [(b"host", b"h"), (b"content-length", b"3")]),
        ([(b"connection", b"upgrade, http2-settings"), (b"http2-settings", b"AAM")], []),
        ([(b"HTTP2-Settings", b"AAM")], []),
        ([(b"upgrade", b"x"), (b"te", b"x"), (b"trailer", b"x"), (b"keep-alive", b"5"),
          (b"proxy-connection", b"x"), (b"transfer-encoding", b"chunked")], []),
        ([(b"X-Remote-User", b"root"), (b"X_Remote_User", b"root"), (b"x.remote.group", b"root"),
          (b"x-remote_extra-a", b"b"), (b"Impersonate_User", b"root"), (b"authorization", b"x"),
          (b"Proxy-Authorization", b"x")], []),
        ([(b"x-remotely", b"1"), (b"author", b"1")], [(b"x-remotely", b"1"), (b"author", b"1")]),
        ([(b"sec-websocket-protocol", TOKEN)], []),
        ([(b"sec-websocket-protocol", b"v5.channel.k8s.io, " + TOKEN + b", chat")],
         [(b"sec-websocket-protocol", b"v5.channel.k8s.io, chat")]),
    ],
)  # fmt: skip
def test_a_server_gets_nothing_that_is_the_client_s_or_the_connection_s(
    given: Fields, kept: Fields
) -> None:
    assert forwarding.forward_fields(given) == kept


def test_an_upgrade_is_asked_for_without_what_else_connection_names() -> None:
    given = [(b"Connection", b"Upgrade, X-Remote-User"), (b"Upgrade", b"websocket")]
    assert forwarding.upgrade_fields(given) == [
        (b"connection", b"Upgrade"),
        (b"upgrade", b"websocket"),
    ]


@pytest.mark.parametrize(
    ("upgrade", "is_http2"), [(b"h2c", True), (b"websocket, H2C", True), (b"SPDY/3.1", False)]
)
def test_an_upgrade_to_http2_is_known(upgrade: bytes, is_http2: bool) -> None:
    assert forwarding.is_http2_upgrade([(b"upgrade", upgrade)]) is is_http2


@pytest.mark.parametrize(
    ("query", "quoted"),
    [
        (b"a=b&c=%2F+d", "a=b&c=%2F+d"),
        (b'q={x}|[y]\\^`"<>', 'q={x}|[y]\\^`"<>'),
        (b"a=\xc3\xa4", "a=%C3%A4"),
        (b"a=b c\r\nX: y#z", "a=b%20c%0D%0AX:%20y%23z"),
        (b"", ""),
    ],
)
def test_a_query_stays_as_it_came_but_for_what_would_end_it(query: bytes, quoted: str) -> None:
    assert forwarding.quote_query(query) == quoted


# --- pods, Services and nodes


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ([(b"Accept", b"*/*")], [(b"accept", b"*/*")]),
        ([(b"cookie", b"a=b"), (b"cookie", b"c=d")], [(b"cookie", b"a=b"), (b"cookie", b"c=d")]),
        ([(b"Authorization", b"Bearer x")], []),
        ([(b"impersonate-user", b"a"), (b"impersonate-extra-x", b"b")], []),
        ([(b"x-remote-user", b"admin"), (b"x-remote-extra-a", b"b")], []),
        ([(b"connection", b"keep-alive, X-Mine"), (b"x-mine", b"1"), (b"keep-alive", b"5")], []),
        ([(b"te", b"trailers"), (b"trailer", b"x"), (b"proxy-authorization", b"x")], []),
        ([(b"transfer-encoding", b"chunked"), (b"expect", b"100-continue")], []),
        ([(b"x-forwarded-uri", b"/wrong")], []),
        ([(b"host", b"api:6443")], [(b"host", b"api:6443")]),
    ],
)
def test_a_request_keeps_what_is_no_ones_between(given: Fields, passed: Fields) -> None:
    sent = forwarding.fields_for_object([*given, (b"user-agent", b"curl")], "10.0.0.9", "/api/x")
    added = [(b"user-agent", b"curl"), (b"x-forwarded-uri", b"/api/x")]
    closing = [(b"x-forwarded-for", b"10.0.0.9"), (b"connection", b"close")]
    assert sent == [*passed, *added, *closing]


def test_the_clients_address_is_added_to_those_before_it() -> None:
    sent = dict(forwarding.fields_for_object([(b"x-forwarded-for", b"1.1.1.1")], "10.0.0.9", "/"))
    assert sent[b"x-forwarded-for"] == b"1.1.1.1, 10.0.0.9"


def test_an_upgrade_keeps_its_headers_but_no_token() -> None:
    given = [
        (b"connection", b"Upgrade"), (b"upgrade", b"websocket"), (b"content-length", b"0"),
        (b"sec-websocket-protocol", b"base64url.bearer.authorization.k8s.io.eA, chat"),
        (b"authorization", b"Bearer x"),
    ]  # fmt: skip
    assert forwarding.upgrade_for_object(given, "") == [
        (b"sec-websocket-protocol", b"chat"), (b"connection", b"Upgrade"),
        (b"upgrade", b"websocket"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "given", "passed"),
    [
        (200, [(b"Content-Type", b"a/b"), (b"Content-Length", b"3")],
         [(b"content-type", b"a/b"), (b"content-length", b"3")]),
        (200, [(b"Transfer-Encoding", b"chunked"), (b"Content-Length", b"3")], []),
        (304, [(b"Content-Length", b"3"), (b"ETag", b"x")], [(b"etag", b"x")]),
        (200, [(b"Set-Cookie", b"a"), (b"Set-Cookie", b"b")],
         [(b"set-cookie", b"a"), (b"set-cookie", b"b")]),
        (200, [(b"Access-Control-Allow-Origin", b"*"), (b"Access-Control-Allow-Headers", b"x"),
               (b"Access-Control-Allow-Methods", b"x"),
               (b"Access-Control-Allow-Credentials", b"x")],
         []),
        (200, [(b"Connection", b"close, Foo"), (b"foo", b"1"), (b"Keep-Alive", b"1")], []),
        (200, [(b"bad name", b"1"), (b"a", b"b\x00")], []),
    ],
)  # fmt: skip
def test_a_response_keeps_what_clients_may_see(status: int, given: Fields, passed: Fields) -> None:
    assert forwarding.response_fields(status, given) == passed


# --- servers of APIs


CLIENT = [
    (b"host", b"api"), (b"accept", b"x"), (b"authorization", b"Bearer t"),
    (b"connection", b"X-Own, close"),
    (b"x-own", b"1"), (b"impersonate-user", b"jane"), (b"x-remote-user", b"root"),
    (b"x-remote-extra-a", b"b"), (b"x-forwarded-for", b"1.1.1.1"), (b"te", b"gzip"),
    (b"content-length", b"3"), (b"upgrade", b"spdy"), (b"transfer-encoding", b"chunked"),
]  # fmt: skip


def test_the_server_of_an_api_gets_nothing_that_is_the_client_s_or_the_connection_s() -> None:
    assert forwarding.fields_for_api(CLIENT, "10.0.0.7") == [
        (b"accept", b"x"), (b"x-forwarded-for", b"10.0.0.7"),
    ]  # fmt: skip
    assert forwarding.fields_for_api([(b"accept", b"x")], "") == [(b"accept", b"x")]


def test_a_response_allows_no_other_origin() -> None:
    fields = [
        (b"Content-Type", b"text/plain"), (b"Access-Control-Allow-Origin", b"*"),
        (b"Connection", b"Secret"), (b"Secret", b"1"), (b"Transfer-Encoding", b"chunked"),
    ]  # fmt: skip
    assert forwarding.response_fields(200, fields) == [(b"content-type", b"text/plain")]
