"""The tables are TestAuthProxyRoundTripper and TestHeaderEscapeRoundTrip of
staging/src/k8s.io/client-go/transport/round_trippers_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

import pytest

from kcm.apiserver.aggregation.identity import (
    NoHeader,
    escape_header_key,
    identify,
)
from kcm.apiserver.auth.attributes import User


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        (User("user", groups=("groupA", "groupB"),
              extra=(("one", ("alpha", "bravo")), ("two", ("charlie", "delta")))),
         [("X-Remote-User", "user"), ("X-Remote-Group", "groupA"), ("X-Remote-Group", "groupB"),
          ("X-Remote-Extra-one", "alpha"), ("X-Remote-Extra-one", "bravo"),
          ("X-Remote-Extra-two", "charlie"), ("X-Remote-Extra-two", "delta")]),
        (User("user", uid="7"), [("X-Remote-User", "user"), ("X-Remote-Uid", "7")]),
        (User("user", extra=(("alpha.org/foo bar", ("baz",)),)),
         [("X-Remote-User", "user"), ("X-Remote-Extra-alpha.org%2Ffoo%20bar", "baz")]),
        (User("jürgen a"), [("X-Remote-User", "jürgen a")]),
    ],
)  # fmt: skip
def test_a_user_is_told_by_headers(user: User, headers: list[tuple[str, str]]) -> None:
    assert identify(user) == [(name.encode(), value.encode()) for name, value in headers]


@pytest.mark.parametrize(
    "user",
    [User("a\r\nX-Remote-Group: system:masters"), User("root "), User("a", groups=("\x00",)),
     User("a", extra=(("k", ("\u00a0v",)),)), User("\udcff")],
)  # fmt: skip
def test_a_name_that_servers_would_read_otherwise_is_refused(user: User) -> None:
    with pytest.raises(NoHeader, match="net/http: invalid header field value for"):
        identify(user)


@pytest.mark.parametrize(
    ("key", "escaped"),
    [
        ("alpha", "alpha"),
        ("alpha/bravo", "alpha%2Fbravo"),
        ("ü", "%C3%BC"),
        ("foo%", "foo%25"),
        ("a b", "a%20b"),
        ("", ""),
    ],
)
def test_a_key_is_escaped(key: str, escaped: str) -> None:
    assert escape_header_key(key) == escaped
