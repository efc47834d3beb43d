"""The server's flags about limits on its clients."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import click

from kcm.apiserver.http.limits import Limits

_DEFAULTS = Limits()

_FLAGS = (
    click.option(
        "--max-requests-inflight",
        type=click.IntRange(0),
        default=_DEFAULTS.max_requests_inflight,
        show_default=True,
        help="The most requests that read in flight at a time, watches excluded; others get 429. "
        "0: no limit.",
    ),
    click.option(
        "--max-mutating-requests-inflight",
        type=click.IntRange(0),
        default=_DEFAULTS.max_mutating_requests_inflight,
        show_default=True,
        help="The most mutating requests in flight at a time; others get 429. 0: no limit.",
    ),
    click.option(
        "--request-timeout",
        type=click.FloatRange(0),
        default=_DEFAULTS.request_timeout,
        show_default=True,
        help="Seconds after which a request gets 504, watches excluded. 0: no limit.",
    ),
    click.option(
        "--max-watches-per-user",
        type=click.IntRange(0),
        default=_DEFAULTS.max_watches_per_user,
        show_default=True,
        help="The most open watches of one user; others get 429. Members of system:masters have no "
        "limit. 0: no limit.",
    ),
    click.option(
        "--max-unauthenticated-connections-per-address",
        type=click.IntRange(0),
        default=_DEFAULTS.max_unauthenticated_connections_per_address,
        show_default=True,
        help="The most connections from one address that have not sent a request with valid "
        "credentials; others are closed at once. 0: no limit.",
    ),
    click.option(
        "--tls-handshake-timeout",
        type=click.FloatRange(0),
        default=_DEFAULTS.tls_handshake_timeout,
        show_default=True,
        help="Seconds that a client has for the TLS handshake. 0: a minute.",
    ),
)


def add_limit_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags to a command."""
    return reduce(lambda decorated, option: option(decorated), reversed(_FLAGS), command)


def take_limits(values: dict[str, Any]) -> Limits:
    """Removes the values of these flags from those of a command, and returns them."""
    return Limits(
        max_requests_inflight=values.pop("max_requests_inflight"),
        max_mutating_requests_inflight=values.pop("max_mutating_requests_inflight"),
        request_timeout=values.pop("request_timeout"),
        max_watches_per_user=values.pop("max_watches_per_user"),
        max_unauthenticated_connections_per_address=values.pop(
            "max_unauthenticated_connections_per_address"
        ),
        tls_handshake_timeout=values.pop("tls_handshake_timeout"),
    )
