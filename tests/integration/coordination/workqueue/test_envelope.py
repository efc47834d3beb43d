"""Tests that kombu and Celery understand the messages that the scripts push."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker

from kcm.coordination.workqueue import WorkQueue
from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from tests.integration.coordination.workqueue.conftest import Configure, messages

KEY = "default/web-ü\"'\\"  # a key that needs every kind of escaping


@pytest.fixture
def app(redis_server: EmbeddedServer, io: RedisIO) -> Iterator[Celery]:
    app = Celery(
        "contract", broker=f"redis+socket://{redis_server.socket_path}", set_as_current=False
    )
    app.conf.update(
        broker_transport_options={"global_keyprefix": io.keys.broker_prefix()},
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_default_queue="controllers",
        broker_connection_retry_on_startup=False,
        worker_hijack_root_logger=False,
    )
    yield app
    app.close()


def shape(value: Any) -> Any:
    """Returns the value with its scalars replaced by the names of their types."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    if isinstance(value, list):
        return [shape(part) for part in value]
    return type(value).__name__


def test_a_pushed_message_has_the_shape_of_celerys_own(
    app: Celery, queue: WorkQueue, io: RedisIO
) -> None:
    @app.task(name="kcm.replicaset.sync", shared=False)  # type: ignore[untyped-decorator] # Celery's
    def sync(key: str) -> None: ...

    with app.connection_for_write() as connection:
        channel = connection.channel()
        channel.body_encoding = None  # Celery would choose base64, which Lua has not
        producer = app.amqp.Producer(channel)
        sync.apply_async((KEY,), producer=producer, queue="controllers", ignore_result=True)
    (theirs,) = messages(io)
    io.execute("DEL", io.keys.broker_prefix() + "controllers")
    queue.add(KEY)
    (ours,) = messages(io)

    assert json.loads(ours["body"]) == json.loads(theirs["body"])
    theirs["properties"]["body_encoding"] = "utf-8"
    assert shape(ours) == shape(theirs)
    for part, volatile in (
        ("headers", {"id", "root_id", "origin", "argsrepr"}),
        ("properties", {"correlation_id", "reply_to", "delivery_tag"}),
    ):
        fixed = {name: value for name, value in theirs[part].items() if name not in volatile}
        assert fixed == {k: v for k, v in ours[part].items() if k not in volatile}


def test_the_broker_gets_it_under_the_bare_list_name(queue: WorkQueue, io: RedisIO) -> None:
    queue.add("a")
    assert io.execute("LLEN", "kcm:celery:controllers") == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning:celery.*")  # the worker's own, not ours
def test_a_real_worker_runs_pushed_messages(app: Celery, configure: Configure, io: RedisIO) -> None:
    queue = configure(threshold=2, claim=2)
    ran: list[tuple[str, str]] = []
    complete = threading.Event()

    @app.task(name="kcm.replicaset.sync", bind=True, shared=False)  # type: ignore[untyped-decorator]  # Celery's
    def sync(self: Any, key: str) -> None:
        ran.extend((lease.key, self.request.id) for lease in queue.take(key))
        if len(ran) == 4:
            complete.set()

    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=10):
        queue.add(KEY, "a", "b", "c")
        assert complete.wait(10)
    assert sorted(key for key, _ in ran) == sorted([KEY, "a", "b", "c"])
    assert len({task for _, task in ran}) == 3
    assert queue.stats().outstanding == 0
