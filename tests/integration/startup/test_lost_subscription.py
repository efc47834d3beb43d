"""A worker's connection for messages to all is lost, and nobody is kept waiting for it."""

from __future__ import annotations

import threading

from kombu import Connection

from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.testing.waiting import PATIENCE
from workers.broker import broker_url, kubelet_fanout, transport_options


def test_a_lost_subscription_is_told_and_not_waited_for(settings: Settings, io: RedisIO) -> None:
    options = transport_options(settings)
    with Connection(broker_url(settings), transport_options=options) as connection:
        channel = connection.default_channel
        connection.Consumer(kubelet_fanout("n1"), auto_declare=True).consume()
        connection.transport.cycle._register_LISTEN(channel)  # as kombu's event loop does
        channel._receive()  # that it is subscribed
        raised: list[BaseException] = []

        def receive() -> None:
            try:
                channel._receive()
            except channel.connection_errors as error:
                raised.append(error)

        io.execute("CLIENT", "KILL", "TYPE", "pubsub")
        thread = threading.Thread(target=receive, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert raised
