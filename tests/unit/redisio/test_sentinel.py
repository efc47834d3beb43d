from __future__ import annotations

import pytest
from redis.sentinel import SentinelManagedSSLConnection

from kcm import errors
from kcm.redisio import sentinel
from kcm.redisio.links import Links


def test_a_url_names_sentinels_and_their_service() -> None:
    url = sentinel.parse("sentinel://a,b:1,[::1]:2/kcm")
    assert url.nodes == (("a", 26379), ("b", 1), ("::1", 2))
    assert (url.service, url.database) == ("kcm", 0)
    assert url.broker_url() == "sentinel://a:26379/0;sentinel://b:1/0;sentinel://[::1]:2/0"


def test_names_and_passwords_are_unquoted_and_quoted_again_for_kombu() -> None:
    url = sentinel.parse("sentinel://w%40rk:p%2F%3A@a/kcm/7?sentinel_password=s%26t")
    assert url.credentials == {"username": "w@rk", "password": "p/:"}
    assert url.sentinel_credentials == {"password": "s&t"}
    assert url.database == 7
    assert url.broker_url() == "sentinel://w%40rk:p%2F%3A@a:26379/7"


def test_tls_is_for_servers_and_sentinels() -> None:
    url = sentinel.parse("rediss+sentinel://a/kcm?ssl_ca_certs=/ca.crt")
    assert url.tls == {"ssl": True, "ssl_ca_certs": "/ca.crt"}
    options = url.sentinel_options({"socket_timeout": 3.0, "client_name": "x"})
    assert options.pop("retry").get_retries() == 0
    assert options == {"socket_timeout": 3.0, "ssl": True, "ssl_ca_certs": "/ca.crt"}


@pytest.mark.parametrize(("scheme", "secured"), [("sentinel", False), ("rediss+sentinel", True)])
def test_connections_to_servers_have_tls_if_the_url_says_so(scheme: str, secured: bool) -> None:
    client = sentinel.parse(f"{scheme}://a/kcm").connect({}, Links())
    kind = client.connection_pool.connection_class
    assert issubclass(kind, SentinelManagedSSLConnection) is secured
    client.close()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("sentinel://a:26379", "has no service"),
        ("sentinel:///kcm", "has no sentinel"),
        ("sentinel://a/kcm/x", "x is no number of a database"),
        ("sentinel://a:x/kcm", "Port could not be cast"),
        ("sentinel://a,,b/kcm", "a sentinel has no host"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_its_password(url: str, why: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=why) as caught:
        sentinel.parse(url.replace("//", "//me:secret@") + "?sentinel_password=secret")
    assert "sentinel://HOST:26379,HOST:26379/SERVICE" in str(caught.value)
    assert "secret" not in str(caught.value)
