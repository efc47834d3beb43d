"""The server's flags about limits on its clients."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import click

from kcm.apiserver.http.limits import Limits

_DEFAULTS = Limits()

_HELP = {  # by the names of the limits, in the order of --help
    "max_requests_inflight": "The most requests that read in flight at a time, watches excluded; "
    "others get 429. 0: no limit.",
    "max_mutating_requests_inflight": "The most mutating requests in flight at a time; others get "
    "429. 0: no limit.",
    "request_timeout": "Seconds after which a request gets 504, watches excluded. 0: no limit.",
    "max_watches_per_user": "The most open watches of one user; others get 429. Members of "
    "system:masters have no limit. 0: no limit.",
    "max_unauthenticated_connections_per_address": "The most connections from one address that "
    "have not sent a request with valid credentials; others are closed at once. 0: no limit.",
    "tls_handshake_timeout": "Seconds that a client has for the TLS handshake. 0: a minute.",
}


def add_limit_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags to a command."""
    return reduce(_add_flag, reversed(_HELP), command)


def _add_flag(command: Callable[..., Any], limit: str) -> Callable[..., Any]:
    default = getattr(_DEFAULTS, limit)
    return click.option(
        f"--{limit.replace('_', '-')}",
        type=click.FloatRange(0) if isinstance(default, float) else click.IntRange(0),
        default=default,
        show_default=True,
        help=_HELP[limit],
    )(command)


def take_limits(values: dict[str, Any]) -> Limits:
    """Removes the values of these flags from those of a command, and returns them."""
    return Limits(**{limit: values.pop(limit) for limit in _HELP})
