"""What a request keeps when it is passed on."""

from __future__ import annotations

import pytest

from kcm.apiserver.backends import forwarding
from kcm.apiserver.backends.forwarding import Fields

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
