"""The baseline of the work queue: a Celery app with one task that does nothing.

It has Celery's defaults, with kcm's connection options, acknowledgement and event settings, so that
the two differ only in what kcm adds.
"""

from __future__ import annotations

from celery import Celery

from bench.stamps import StampWriter
from kcm.settings import Settings
from workers.broker import broker_url, transport_options

stamp = StampWriter()


def create_app(settings: Settings) -> Celery:
    app = Celery("raw", set_as_current=False)
    app.conf.update(
        broker_url=broker_url(settings),
        broker_transport_options={
            **transport_options(settings),
            "global_keyprefix": "raw:celery:",
        },
        broker_connection_retry_on_startup=True,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
    )
    app.task(name="raw.noop")(noop)
    return app


def noop(key: str) -> None:
    stamp()


app = create_app(Settings())
