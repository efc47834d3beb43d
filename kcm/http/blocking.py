"""Sends HTTP requests from threads, with httpx.

The clients are httpx's own, over the transport of `blocking_transport`. They are opened here, so
that they have the limits and the trust of every other request, and what they raise is told here in
the words of `faults`. For who sends many requests to one server there is the transport alone: what
a client of httpx adds (cookies, redirects, merged headers) costs as much as the request itself.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.request import getproxies

import httpx

from kcm.http.blocking_transport import BlockingTransport
from kcm.http.faults import CallFailed, connection_fault
from kcm.http.limits import CONNECT_TIMEOUT, IDLE_TIMEOUT, MOST_IDLE

_PROXIES = frozenset({"http", "https", "all"})  # of the environment, by what they are for
_CLOSED = {
    "Server disconnected without sending a response.": "EOF",
    "peer closed connection without sending complete message body": "unexpected EOF",
}


@dataclass(frozen=True)
class ClientOptions:
    """How a client sends its requests.

    `trust` is for https; without it, any certificate is accepted. With `proxies`, those of the
    environment are used. `timeout` is in seconds, for each wait for the server.
    """

    timeout: float
    trust: ssl.SSLContext | None = None
    headers: Sequence[tuple[str, str]] = ()
    most_idle: int = MOST_IDLE  # unused connections that are kept
    proxies: bool = False
    base_url: str = ""


def open_client(options: ClientOptions) -> httpx.Client:
    """Returns a client. Threads may share it."""
    trust = options.trust or _trust_anybody()
    proxied = options.proxies and _are_proxies_set()
    return httpx.Client(
        base_url=options.base_url,
        headers=list(options.headers),
        verify=trust,
        timeout=limit(options.timeout),
        trust_env=options.proxies,
        # httpx's own transport speaks to proxies.
        transport=None if proxied else BlockingTransport(trust, options.most_idle),
        limits=httpx.Limits(
            max_connections=None,
            max_keepalive_connections=options.most_idle,
            keepalive_expiry=IDLE_TIMEOUT,
        ),
    )


def open_transport(options: ClientOptions) -> httpx.BaseTransport:
    """Returns a transport. Threads may share it. Of the options, timeout, headers and base URL are
    for each request to say. Responses have to be closed.
    """
    if options.proxies and _are_proxies_set():
        return _ClientTransport(open_client(options))
    return BlockingTransport(options.trust or _trust_anybody(), options.most_idle)


class _ClientTransport(httpx.BaseTransport):
    """A client of httpx, which knows the way to proxies, as a transport."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._client.send(request, stream=True)

    def close(self) -> None:
        self._client.close()


def _are_proxies_set() -> bool:
    return not _PROXIES.isdisjoint(getproxies())


def _trust_anybody() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def limit(seconds: float, read: float | None = None) -> httpx.Timeout:
    """Returns the limits of a request, in seconds, of which `read` is for each read if given."""
    connect = min(seconds, CONNECT_TIMEOUT)
    return httpx.Timeout(seconds, connect=connect, read=seconds if read is None else read)


def get(url: str, options: ClientOptions, *, most: int) -> tuple[int, bytes]:
    """Returns the status of a page and its body, as far as it has come when `most` bytes have.

    Redirects are followed. Raises CallFailed.
    """
    try:
        with (
            open_client(options) as client,
            client.stream("GET", url, follow_redirects=True) as response,
        ):
            body = bytearray()
            for piece in response.iter_bytes():
                body += piece
                if len(body) >= most:
                    break
            return response.status_code, bytes(body[:most])
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise describe(error, url) from None


def describe(error: Exception, url: str | httpx.URL) -> CallFailed:
    """Returns why a request for a URL failed, without its own name for the error."""
    where = httpx.URL(url)
    port = where.port or (443 if where.scheme == "https" else 80)
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        return CallFailed(f"dial tcp {where.host}:{port}: i/o timeout", timed_out=True)
    if isinstance(error, httpx.TimeoutException):
        return CallFailed("context deadline exceeded", timed_out=True)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError):
            return connection_fault(cause, f"{where.host}:{port}")
        cause = cause.__cause__ or cause.__context__
    said = str(error)
    return CallFailed(next((why for text, why in _CLOSED.items() if said.startswith(text)), said))
