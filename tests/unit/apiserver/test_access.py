from __future__ import annotations

import pytest

from kcm import errors
from kcm.apiserver.access import Access
from kcm.apiserver.refusals import Unauthorized
from kcm.listening import is_loopback_host

HOST = {b"host": b"localhost:8001"}


def allowed(access: Access, path: str = "/api", **headers: str) -> bool:
    sent = HOST | {name.encode(): value.encode() for name, value in headers.items()}
    try:
        access.check(path, sent)
    except Unauthorized:
        return False
    return True


def test_the_token_opens_and_anything_else_does_not() -> None:
    access = Access("right")
    assert allowed(access, authorization="Bearer right")
    for wrong in ("Bearer wrong", "Bearer ", "Basic right", "right", "Bearer rightx"):
        assert not allowed(access, authorization=wrong)
    assert not allowed(access)


def test_an_empty_token_opens_nothing() -> None:
    assert not allowed(Access(""), authorization="Bearer ")


def test_health_and_version_are_public_and_nothing_that_looks_like_them() -> None:
    access = Access("right")
    for path in ("/livez", "/readyz/redis", "/healthz", "/version"):
        assert allowed(access, path)
    for path in ("/versions", "/livezx", "/api/v1/pods"):
        assert not allowed(access, path)


def test_anonymous_access_is_a_choice_and_a_wrong_token_stays_wrong() -> None:
    access = Access("right", anonymous=True)
    assert allowed(access)
    assert not allowed(access, authorization="Bearer wrong")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]:8001"])
def test_other_hosts_are_refused_on_loopback(host: str) -> None:
    with pytest.raises(errors.Forbidden):
        Access("right").check("/livez", {b"host": host.encode()})
    Access("right", loopback=False).check("/livez", {b"host": host.encode()})


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:80", "127.1.2.3"]
)
def test_loopback_names_are_known(host: str) -> None:
    assert is_loopback_host(host)
