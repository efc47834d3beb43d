from __future__ import annotations

import pytest

from kcm import errors
from kcm.apiserver.auth.access import AccessRules, is_public
from kcm.apiserver.auth.attributes import User
from kcm.apiserver.http_errors import Unauthorized
from kcm.apiserver.request import Request
from kcm.http.listening import is_loopback_host


def request(path: str = "/api", method: str = "GET", **headers: str) -> Request:
    sent = {"host": "localhost:8001"} | headers
    fields = [(name.encode(), value.encode()) for name, value in sent.items()]
    return Request(method, path, b"", dict(fields), fields=fields)


def who(access: AccessRules, **headers: str) -> User | None:
    try:
        return access.user(request(**headers))
    except Unauthorized:
        return None


def test_the_token_opens_and_anything_else_does_not() -> None:
    access = AccessRules("right")
    for right in ("Bearer right", "bearer right", "Bearer  right"):
        user = who(access, authorization=right)
        assert user is not None
        assert user.name == "kubernetes-admin"
        assert user.groups == ("system:masters", "system:authenticated")
    for wrong in ("Bearer wrong", "Bearer ", "Basic right", "right", "Bearer rightx", "Bearer r t"):
        assert who(access, authorization=wrong) is None
    assert who(access) is None


def test_an_empty_token_opens_nothing() -> None:
    assert who(AccessRules(""), authorization="Bearer ") is None
    assert who(AccessRules(""), authorization="Bearer") is None


def test_users_of_a_token_file_are_known_and_authenticated() -> None:
    access = AccessRules("right", users={"hers": User("jane", "7", ("dev",))})
    user = who(access, authorization="Bearer hers")
    assert user == User("jane", "7", ("dev", "system:authenticated"))


def test_the_administrators_token_is_never_somebody_elses() -> None:
    user = who(AccessRules("same", users={"same": User("eve")}), authorization="Bearer same")
    assert user is not None
    assert user.name == "kubernetes-admin"


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/version", "/version/"])
def test_health_and_version_are_public(path: str) -> None:
    assert is_public(request(path))
    assert is_public(request(path, "HEAD"))
    assert not is_public(request(path, "POST"))


@pytest.mark.parametrize(
    "path", ["/versions", "/livezx", "/readyz/redis", "/metrics", "//livez", "/livez/", "/LIVEZ"]
)
def test_nothing_that_looks_like_them_is(path: str) -> None:
    assert not is_public(request(path))


def test_anonymous_access_is_a_choice_and_a_wrong_token_stays_wrong() -> None:
    access = AccessRules("right", anonymous=True)
    user = who(access)
    assert user == User("system:anonymous", groups=("system:unauthenticated",))
    assert who(access, authorization="Bearer wrong") is None


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]:8001"])
def test_other_hosts_are_refused_on_loopback(host: str) -> None:
    with pytest.raises(errors.Forbidden):
        AccessRules("right").check(request("/livez", host=host))
    AccessRules("right", loopback=False).check(request("/livez", host=host))


@pytest.mark.parametrize("name", [b"host", b"authorization"])
def test_what_may_come_once_may_not_come_twice(name: bytes) -> None:
    fields = [(b"host", b"localhost"), (name, b"localhost"), (name, b"localhost")]
    twice = Request("GET", "/api", b"", dict(fields), fields=fields)
    with pytest.raises(errors.BadRequest):
        AccessRules("right").check(twice)


def test_tokens_are_not_shown() -> None:
    assert "right" not in repr(AccessRules("right", users={"rightly": User("jane")}))


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:80", "127.1.2.3"]
)
def test_loopback_names_are_known(host: str) -> None:
    assert is_loopback_host(host)
