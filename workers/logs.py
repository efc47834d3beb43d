"""Logging: Celery's lines and kcm's in the same form."""

from __future__ import annotations

from typing import Any

from celery import signals

from kcm.logs import configure
from kcm.settings import Settings


def connect() -> None:
    """Replaces Celery's logging set-up. Further calls do nothing."""
    signals.setup_logging.connect(_configure, dispatch_uid="kcm-logging")


def _configure(**_: Any) -> None:
    settings = Settings()
    configure(settings.log_format, settings.log_level)
