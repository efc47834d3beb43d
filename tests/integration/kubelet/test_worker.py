"""The kubelet's Celery messages: one that wakes up a node, and one to all nodes."""

from __future__ import annotations

from typing import Any

from celery import Celery
from kombu import Connection, Queue

from beat_schedule import beat_schedule
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.testing.waiting import until
from workers.broker import KUBELET_HOUSEKEEPING, broker_url, kubelet_fanout, transport_options
from workers.kubelet import SYNC_TASK, Waker, create_app, queue_of


class Listener:
    """Consumes the messages of one queue."""

    def __init__(self, settings: Settings, queue: Queue) -> None:
        self.heard: list[tuple[str, Any]] = []
        url, options = broker_url(settings), transport_options(settings)
        self._connection = Connection(url, transport_options=options)
        consumer = self._connection.Consumer(queue, callbacks=[self._take], accept=["json"])
        consumer.consume()

    def _take(self, _: Any, message: Any) -> None:
        self.heard.append((message.headers["task"], message.headers["argsrepr"]))
        message.ack()

    def listen(self) -> list[tuple[str, Any]]:
        """Waits briefly for a message; returns all messages so far."""
        try:
            self._connection.drain_events(timeout=0.05)
        except TimeoutError:
            return self.heard
        return self.heard

    def close(self) -> None:
        self._connection.close()


def app_of(settings: Settings, node: str) -> Celery:
    flags = {"node_name": node, "root_dir": str(settings.state_dir / node)}
    return create_app(settings, flags)


def test_beats_housekeeping_reaches_every_node(settings: Settings, io: RedisIO) -> None:
    listeners = [Listener(settings, kubelet_fanout(node)) for node in ("n1", "n2")]
    entry = beat_schedule([])[KUBELET_HOUSEKEEPING]
    beat = Celery("beat", broker=broker_url(settings), set_as_current=False)
    beat.conf.broker_transport_options = transport_options(settings)

    def heard() -> bool:
        # A subscription takes a moment, so it is sent until both have heard it.
        beat.send_task(entry["task"], args=entry["args"], **entry["options"])
        heard = [listener.listen() for listener in listeners]
        return all(heard)

    until(heard, "housekeeping was not heard by both")
    assert {task for task, _ in listeners[0].heard} == {KUBELET_HOUSEKEEPING}
    for listener in listeners:
        listener.close()


def test_a_waiting_pod_wakes_its_node_by_name(settings: Settings, io: RedisIO) -> None:
    app = app_of(settings, "n1")
    waker = Waker(app, queue_of("n1"), lambda uid: f"web_default {uid}")
    listener = Listener(settings, Queue(queue_of("n1"), routing_key=queue_of("n1")))
    waker.notify("u1")
    waker.turn(0.0)
    until(listener.listen, "no message came")
    assert listener.heard == [(SYNC_TASK, "web_default u1")]
    listener.close()


def test_the_task_does_the_work_of_the_agent(settings: Settings) -> None:
    app = app_of(settings, "n1")
    app.tasks[SYNC_TASK].run("u1")  # without a kubelet, nothing
    done: list[str] = []

    class Process:
        class kubelet:  # noqa: N801 - stands in for an attribute
            sync_waiting_pod = done.append
            request_housekeeping = staticmethod(lambda: done.append("housekeeping"))

    app.kcm_kubelet = Process
    app.tasks[SYNC_TASK].run("u1")
    app.tasks[KUBELET_HOUSEKEEPING].run("", 0.0)
    assert done == ["u1", "housekeeping"]
