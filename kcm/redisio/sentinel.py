"""URLs of a Redis that Sentinel finds, and the driver's options for it.

    sentinel://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]...]/SERVICE[/DATABASE][?OPTIONS]

USER and PASSWORD are for the servers; they are quoted as in every URL. `rediss+sentinel` instead of
`sentinel` is for TLS, to the servers and to the sentinels. OPTIONS are those of the driver, such as
`ssl_ca_certs`, and `sentinel_username` and `sentinel_password`, which the sentinels ask for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry
from redis.sentinel import (
    Sentinel,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)

from kcm import errors
from kcm.redisio.links import Address, Links

SCHEMES = ("sentinel://", "rediss+sentinel://")
_PORT = 26379
_FORM = "sentinel://HOST:26379,HOST:26379/SERVICE"
_OF_SENTINELS = "sentinel_"  # options that begin so are for the sentinels


@dataclass(frozen=True)
class SentinelUrl:
    """What a URL says of the sentinels, and of the servers of one service."""

    nodes: tuple[tuple[str, int], ...]  # hosts and ports of the sentinels
    service: str
    database: int = 0
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)  # for the servers
    sentinel_credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: Mapping[str, Any] = field(default_factory=dict)  # options that begin with `ssl`
    others: Mapping[str, Any] = field(default_factory=dict)  # more options of the driver

    def connect(self, options: Mapping[str, Any], links: Links) -> redis.Redis:
        """Returns a client of the service's master. Nothing is sent yet.

        `options` are the driver's, for the servers; their time limits hold for the sentinels, too.
        """
        sentinel_options = self.sentinel_options(options)
        sentinel: Any = _Sentinels(self.nodes, sentinel_kwargs=sentinel_options)  # type: ignore[no-untyped-call] # the driver's gap
        sentinel.links = links
        more = {**options, **self.credentials, **self.tls, **self.others, "db": self.database}
        connection = _TlsConnection if self.tls else _Connection
        client: redis.Redis = sentinel.master_for(self.service, connection_class=connection, **more)
        return client

    def sentinel_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the driver's options for the sentinels, with the time limits of `options`.

        A sentinel that does not answer is not asked again: the next one is.
        """
        limits = {name: value for name, value in options.items() if name.startswith("socket_")}
        return {**limits, "retry": Retry(NoBackoff(), 0), **self.sentinel_credentials, **self.tls}

    def broker_url(self) -> str:
        """Returns the URL in kombu's form, which repeats the credentials for each sentinel."""
        user, password = (self.credentials.get(name, "") for name in ("username", "password"))
        login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user or password else ""
        return ";".join(
            f"sentinel://{login}{_join(host, port)}/{self.database}" for host, port in self.nodes
        )


class _Resolving:
    """A connection that asks for the master whenever it connects.

    The driver's asks when it is taken from its pool, and sends a command that failed again to the
    server of before.
    """

    _sock: Any  # of the driver's connection

    def send_packed_command(self: Any, command: Any, check_health: bool = True) -> None:
        if self._sock is None:
            self._connect_retry()
        super().send_packed_command(command, check_health)  # type: ignore[misc] # of the driver's connection


class _Connection(_Resolving, SentinelManagedConnection):
    pass


class _TlsConnection(_Resolving, SentinelManagedSSLConnection):
    pass


class _Sentinels(Sentinel):
    """The sentinels, of which some have not heard yet of a master that another has announced."""

    links: Links

    def discover_master(self, service_name: str) -> Address:
        announced = self.links.announced_master()
        if announced is not None:
            return announced
        named: Address = super().discover_master(service_name)  # type: ignore[no-untyped-call] # the driver's gap
        return named


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_sentinel(url: str) -> bool:
    """Reports whether a URL is of a Redis that Sentinel finds."""
    return url.startswith(SCHEMES)


def parse(url: str) -> SentinelUrl:
    """Returns what a URL says. Raises: ConfigurationError."""
    # Without its places, as urlsplit refuses several of them with IPv6 addresses among them.
    scheme, _, remainder = url.partition("://")
    netloc = re.split(r"[/?#]", remainder, maxsplit=1)[0]
    login, at, places = netloc.rpartition("@")
    parts = urlsplit(f"{scheme}://sentinels{remainder[len(netloc) :]}")
    service, _, database = parts.path.strip("/").partition("/")
    query = dict(parse_qsl(parts.query))
    own = {name: value for name, value in query.items() if name.startswith(_OF_SENTINELS)}
    rest = urlencode({name: value for name, value in query.items() if name not in own})
    driver_scheme = "rediss" if scheme.startswith("rediss") else "redis"
    try:
        if not service or not places:
            raise ValueError("it has no service" if places else "it has no sentinel")
        if database and not database.isdecimal():
            raise ValueError(f"{database} is no number of a database")
        options = dict(parse_url(f"{driver_scheme}://{login}{at}server/{database or 0}?{rest}"))  # type: ignore[no-untyped-call] # the driver's gap
        nodes = tuple(_parse_node(place) for place in places.split(","))
    except ValueError as error:
        shown = parts._replace(netloc=places, query="").geturl()
        raise errors.ConfigurationError(
            f"KCM_REDIS_URL {shown} cannot be used: {error}. Its form is {_FORM}"
        ) from None
    for name in ("host", "connection_class", "db"):
        options.pop(name, None)
    logins = {name: options.pop(name) for name in ("username", "password") if name in options}
    tls = {name: options.pop(name) for name in list(options) if name.startswith("ssl_")}
    return SentinelUrl(
        nodes,
        service,
        int(database or 0),
        logins,
        {name.removeprefix(_OF_SENTINELS): value for name, value in own.items()},
        {"ssl": True, **tls} if driver_scheme == "rediss" else {},
        options,
    )


def _parse_node(place: str) -> tuple[str, int]:
    parts = urlsplit(f"//{place}")
    if not parts.hostname:
        raise ValueError("a sentinel has no host")
    return parts.hostname, parts.port or _PORT
