"""Every key name of kcm (design 0027).

All keys begin with the prefix; a resource is named as in `kubectl`
(`pods`, `replicasets.apps`), an object key is `namespace/name` or `name`.
`docs/redis-keys.md` explains each for people with `redis-cli`. The Lua library
builds the same names; `tests/unit/redisio/test_keys.py` holds them together.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Keys:
    """The key names under one prefix."""

    prefix: str = "kcm"

    def _join(self, *parts: str) -> str:
        return ":".join((self.prefix, *parts))

    # --- store
    def meta(self) -> str:
        """Hash: run_id, format, epoch, epoch_start, epoch_token, born (the data id); former, once
        emptied."""
        return self._join("meta")

    def resource_version(self) -> str:
        """String: the counter behind every resourceVersion."""
        return self._join("rv")

    def object(self, resource: str, key: str) -> str:
        """Hash: json, rv, uid, index (newline-joined entries), deleting."""
        return self._join("object", resource, key)

    def object_keys(self, resource: str) -> str:
        """Sorted set, all scores 0: the object keys of a resource in lexical order."""
        return self._join("keys", resource)

    def index(self, entry: str) -> str:
        """Set of `<resource> <key>` for one index entry, e.g. `owner:<uid>`."""
        return self._join("index", entry)

    def raised(self) -> str:
        """Hash: index entry `node:<name>` to the resourceVersion at which a pod last came to
        the node or left it, and the stamp of the guard under which it came."""
        return self._join("raised")

    def charged(self, namespace: str) -> str:
        """Hash: resource to the resourceVersion of its object that was charged to the
        namespace's quotas last."""
        return self._join("charged", namespace)

    def damaged(self) -> str:
        """Hash: `<resource> <key>` of an object that cannot be read to why."""
        return self._join("damaged")

    def watch(self, resource: str) -> str:
        """Stream: the watch log of a resource, ids `<resourceVersion>-0`."""
        return self._join("watch", resource)

    def last_rv(self) -> str:
        """Hash: resource to the resourceVersion of its last write; `*`: that none is missing."""
        return self._join("last_rv")

    def trimmed(self) -> str:
        """Hash: resource to the highest resourceVersion trimmed off its watch log; `*`: when."""
        return self._join("trimmed")

    def trim_marks(self) -> str:
        """Sorted set: resourceVersion counter by time (ms), for trimming by age."""
        return self._join("trim_marks")

    def store_stats(self) -> str:
        """Hash: counters of the store, e.g. writes refused by a fence."""
        return self._join("store", "stats")

    def call(self, call_id: str) -> str:
        """String: the first answer to a call, kept for 60 s."""
        return self._join("call", call_id)

    # --- event bus
    def events(self) -> str:
        """Stream: the event bus, which takes injected events."""
        return self._join("events")

    def dead_events(self) -> str:
        """Stream: refused events with reason and original fields."""
        return self._join("events", "dead")

    def event_stats(self) -> str:
        """Hash: counters of applied and refused events."""
        return self._join("events", "stats")

    # --- work queue
    def queues(self) -> str:
        """Set: the names of the queues that were ever configured."""
        return self._join("queues")

    def queue(self, name: str, part: str) -> str:
        """One part of a work queue: config, waiting, running, delayed, ..."""
        return self._join("queue", name, part)

    def pump_wake(self) -> str:
        """List: a token here wakes the pump before its earliest known due time."""
        return self._join("pump", "wake")

    def expectations(self, controller: str, key: str) -> str:
        """Hash: names or uids that a controller expects to see created or deleted."""
        return self._join("expectations", controller, key)

    def limiter(self, name: str) -> str:
        """Hash: qps, burst, tokens, at (ms) of a token bucket that writes draw from."""
        return self._join("limiter", name)

    def memory(self, controller: str, key: str) -> str:
        """Hash: what a controller remembers about one key from sync to sync."""
        return self._join("memory", controller, key)

    def dispatch_position(self) -> str:
        """Hash: resource to the resourceVersion up to which its events are queued."""
        return self._join("dispatch", "position")

    # --- coordination
    def token(self) -> str:
        """String: the counter behind every fencing token."""
        return self._join("token")

    def lease(self, name: str) -> str:
        """Hash: holder, token, expires (ms) of one internal lease."""
        return self._join("lease", name)

    def tick_state(self, loop: str) -> str:
        """Hash: what a periodic loop keeps between its passes."""
        return self._join("tick", loop)

    def workers(self) -> str:
        """Hash: process identity to its last sign of life and what it is."""
        return self._join("workers")

    def metrics(self) -> str:
        """Hash: counters of syncs and passes over all processes."""
        return self._join("metrics")

    # --- what is measured
    def reported(self, node: str) -> str:
        """Hash, expires: what a node reports of itself and of its pods."""
        return self._join("reported", node)

    def published(self, of: str, metric: str) -> str:
        """Hash: object key, with labels where there are any, to the value of a metric that
        somebody published; `of` is a resource or `external`."""
        return self._join("published", of, metric)

    def broker_stats(self) -> str:
        """Hash: reason to how many messages of the broker were dropped for it."""
        return self._join("broker", "stats")

    def broker_prefix(self) -> str:
        """What kombu puts before every key of its own."""
        return self.prefix + ":celery:"
