"""kombu's Redis transport, for a broker to which other programs may write.

Guarantees: an invalid message, or one with content that kcm never sends, is dropped before Celery
gets it: it is logged, counted in `kcm:broker:stats`, and not put back. A message for a task that
only workers of another version have is handed back a few times before. All else is done by kombu.
"""

from __future__ import annotations

from typing import Any

import structlog
from kombu.transport import redis
from kombu.transport.virtual.base import Empty
from kombu.utils.encoding import bytes_to_str

from workers import messages
from workers.broker import TASKS
from workers.failovers import LINKS

log = structlog.get_logger("kcm.broker")

HANDED_BACK = "kcm-handed-back"  # the header that counts how often a message was handed back
MOST_RETURNS = 10  # with as many workers of each version, one in a thousand messages is dropped
_SHOWN = 200  # characters of a dropped message in the log


class ScriptRights:
    """Whether this process may run scripts of Redis, by which kombu keeps house.

    Flower's Redis user may not. Without them, messages that were not acknowledged are put back and
    bindings of queues that are gone are removed by the workers alone.
    """

    granted = True


class _MessageRecords(redis.QoS):  # type: ignore[misc] # kombu has no types
    """kombu's records of the messages that were delivered and not acknowledged."""

    def restore_visible(self, *args: Any, **options: Any) -> None:
        if ScriptRights.granted:  # it is done under a lock that a script releases
            super().restore_visible(*args, **options)


class _CheckingChannel:
    """A channel that checks messages before it delivers them."""

    QoS = _MessageRecords

    def _queue_bind(self: Any, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        expires = None if ScriptRights.granted else self._expires.pop(queue, None)
        super()._queue_bind(exchange, routing_key, pattern, queue)  # type: ignore[misc] # of kombu's channel
        if expires is not None:  # of the queue; its binding does not expire, which takes a script
            self._expires[queue] = expires

    def maybe_refresh_binding_expiry(self: Any) -> None:
        if ScriptRights.granted:
            super().maybe_refresh_binding_expiry()  # type: ignore[misc] # of kombu's channel

    def _brpop_read(self: Any, **options: Any) -> bool:
        # As kombu's, except for invalid messages.
        try:
            try:
                popped = self.client.parse_response(self.client.connection, "BRPOP", **options)
            except self.connection_errors:
                self.client.connection.disconnect()
                raise
            if not popped:
                raise Empty
            queue = bytes_to_str(popped[0]).rsplit(self.sep, 1)[0]
            self._queue_cycle.rotate(queue)
            self._deliver_checked(popped[1], queue)
            return True
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()

    def _deliver_checked(self: Any, item: bytes, queue: str) -> None:
        try:
            message = messages.parse_message(item)
            messages.check(message, queue, self._tasks())
        except messages.UnknownTaskError as error:
            if not self._hand_back(queue, message):
                self._drop(queue, error, item)
        except messages.RefusedError as error:
            self._drop(queue, error, item)
        else:
            self.connection._deliver(message, queue)

    def _hand_back(self: Any, queue: str, message: Any) -> bool:
        """Puts a message behind the others in its list, for a worker that has its task.

        Reports whether it did: not if the message was handed back too often.
        """
        times = message["headers"].get(HANDED_BACK, 0)
        if not isinstance(times, int) or not 0 <= times < MOST_RETURNS:
            return False
        self._put(queue, message | {"headers": message["headers"] | {HANDED_BACK: times + 1}})
        return True

    def basic_ack(self: Any, delivery_tag: str, multiple: bool = False) -> None:
        # Celery acknowledges every message, also those of `no_ack` queues, which are not kept.
        try:
            self.qos.get(delivery_tag)
        except KeyError:
            return
        super().basic_ack(delivery_tag, multiple)  # type: ignore[misc] # of kombu's channel

    def _deliver_fanout_message(self: Any, message: Any, exchange: str) -> bool:
        queue = self._fanout_to_queue.get(exchange, "")
        try:
            messages.check(message, queue, self._tasks())
        except messages.RefusedError as error:
            self._drop(queue, error, repr(message).encode("utf-8", "replace"))
            return True
        delivered: bool = super()._deliver_fanout_message(message, exchange)  # type: ignore[misc] # of kombu's channel
        return delivered

    def _tasks(self: Any) -> list[str] | None:
        tasks: list[str] | None = self.connection.client.transport_options.get(TASKS)
        return tasks

    def _drop(self: Any, queue: str, error: messages.RefusedError, item: bytes) -> None:
        reason, *why = map(str, error.args)
        log.warning(
            "A message of the broker was dropped",
            queue=queue,
            reason=reason,
            error=" ".join(why)[:_SHOWN],
            shown=item[:_SHOWN].decode("utf-8", "replace"),
        )
        stats = self.global_keyprefix.removesuffix("celery:") + "broker:stats"
        try:
            with self.conn_or_acquire() as client:
                client.execute_command("HINCRBY", stats, reason, 1)
        except Exception as failure:  # noqa: BLE001 - a failed count must not stop the consumer
            log.debug("a dropped message was not counted", error=str(failure))


class ServerChannel(_CheckingChannel, redis.Channel):  # type: ignore[misc] # kombu has no types
    """A checking channel to a plain server."""


class SentinelChannel(_CheckingChannel, redis.SentinelChannel):  # type: ignore[misc] # kombu has no types
    """A checking channel to a server that Sentinel finds, or that a sentinel has announced."""

    def _sentinel_managed_pool(self: Any, asynchronous: bool = False) -> Any:
        pool = super()._sentinel_managed_pool(asynchronous)
        named = pool.proxy.sentinel_manager
        discover = named.discover_master
        named.discover_master = lambda service: LINKS.announced_master() or discover(service)
        return pool


class Transport(redis.Transport):  # type: ignore[misc] # kombu has no types
    """kombu's Redis transport, with channels that drop messages that are not valid."""

    Channel = ServerChannel


class SentinelTransport(redis.SentinelTransport):  # type: ignore[misc] # kombu has no types
    """kombu's Sentinel transport, with channels that drop messages that are not valid."""

    Channel = SentinelChannel
