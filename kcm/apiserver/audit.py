"""The audit log: a line of JSON for each write that a client requested, rejected ones included.

A line says who requested which write, and the status code of the response. It has no bodies, no
query, and no header but the user agent, and the annotations of admission policies. It goes to
standard error as the server's other lines do, but not through their formatter, which takes longer
than the rest of a small request.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO
from urllib.parse import quote

import structlog

from kcm.apiserver.exchange import Exchange

log = structlog.get_logger("kcm.apiserver")

NAME = "kcm.apiserver.audit"
_MOST_PATH = 500  # characters
_MOST_AGENT = 100


class AuditLog:
    """Writes audit lines to a stream if the logger `kcm.apiserver.audit` is enabled for INFO."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._enabled = logging.getLogger(NAME)
        self._log: Any = structlog.wrap_logger(
            structlog.WriteLogger(stream or sys.stderr),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.JSONRenderer(),
            ],
            wrapper_class=structlog.BoundLogger,
            context_class=dict,
        ).bind(logger=NAME)

    def log_write(self, exchange: Exchange, verb: str, code: int, seconds: float) -> None:
        """Writes the line of a request whose response has the status `code`.

        `seconds` is how long the request took. If the line cannot be written, a warning is logged.
        """
        if not self._enabled.isEnabledFor(logging.INFO):
            return
        who, user = exchange.sender or exchange.user, exchange.user
        acting = {} if who == user else {"impersonated": user.name}
        annotations = exchange.remarks.annotations
        try:
            self._log.info(
                "write",
                user=who.name,
                groups=who.groups,
                **acting,
                verb=verb,
                resource=exchange.asked.full_resource if exchange.asked else "",
                path=quote(exchange.request.path)[:_MOST_PATH],
                agent=exchange.request.header(b"user-agent")[:_MOST_AGENT],
                code=code,
                seconds=round(seconds, 4),
                **({"annotations": annotations} if annotations else {}),
            )
        except OSError as error:  # such as a full disk; the write itself has been made
            log.warning("An audit line could not be written", error=str(error))
