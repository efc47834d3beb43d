"""Logging: constant messages with fields, on the console or as JSON.

Records of the standard library's loggers (Celery, uvicorn) and of kcm's own have the same form.
"""

from __future__ import annotations

import logging
import sys

import structlog
import structlog.tracebacks
from structlog.types import Processor

_SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


# A line for each request, each message or each second says nothing about what has gone wrong.
_TALKATIVE = ("httpx", "celery.app.trace", "celery.beat", "celery.worker.strategy")


def configure(log_format: str, level: str) -> None:
    """Writes all logs of `level` and above to standard error, as `console` or `json`.

    Libraries that log each message are silent up to warnings, unless the level is debug.
    """
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(log_format),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _TALKATIVE if root.level > logging.DEBUG else ():
        logging.getLogger(name).setLevel(logging.WARNING)


def pass_to_standard_loggers() -> None:
    """Passes kcm's logs to the loggers of the standard library, as text.

    It is for a process whose own program says which logs are shown, such as pytest. Does nothing if
    structlog is configured.
    """
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,  # a test's own configuration holds from then on
    )


def _renderers(log_format: str) -> list[Processor]:
    # Tracebacks do not show the values of variables, as these may be secrets.
    if log_format == "json":
        tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        return [
            structlog.processors.ExceptionRenderer(tracebacks),
            structlog.processors.JSONRenderer(),
        ]
    return [
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    ]
