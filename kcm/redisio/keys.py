"""The names of all keys of kcm (design 0027).

All keys begin with the prefix; a resource is named as in `kubectl` (`pods`, `replicasets.apps`), an
object key is `namespace/name` or `name`. Each docstring says the Redis type and the content.
`docs/redis-keys.md` explains the keys for users of `redis-cli`. The Lua library builds the same
names; `tests/unit/redisio/test_keys.py` compares them.
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
        """Hash: run_id and replid of the server, format, epoch, epoch_start, epoch_token, born (the
        data id); former, if the store was emptied.
        """
        return self._join("meta")

    def resource_version(self) -> str:
        """String: the counter that is the source of every resourceVersion."""
        return self._join("rv")

    def object(self, resource: str, key: str) -> str:
        """Hash: json, rv, uid, index (newline-joined entries), deleting."""
        return self._join("object", resource, key)

    def object_keys(self, resource: str) -> str:
        """Sorted set, all scores 0: the object keys of a resource in lexical order."""
        return self._join("keys", resource)

    def index(self, entry: str) -> str:
        """Set of `<resource> <key>`: the objects with one index entry, e.g. `owner:<uid>`."""
        return self._join("index", entry)

    def raised(self) -> str:
        """Hash by index entry `node:<name>`: the resourceVersion at which a pod was last bound to
        or removed from the node, and the stamp of the guard under which it was bound.
        """
        return self._join("raised")

    def charged(self, namespace: str) -> str:
        """Hash by resource: the resourceVersion of its object that was last charged to the
        namespace's quotas.
        """
        return self._join("charged", namespace)

    def damaged(self) -> str:
        """Hash by `<resource> <key>` of an object that cannot be read: the reason."""
        return self._join("damaged")

    def watch(self, resource: str) -> str:
        """Stream: the watch log of a resource, ids `<resourceVersion>-0`."""
        return self._join("watch", resource)

    def last_rv(self) -> str:
        """Hash by resource: the resourceVersion of its last write. The field `*` exists if none is
        missing.
        """
        return self._join("last_rv")

    def trimmed(self) -> str:
        """Hash by resource: the highest resourceVersion trimmed off its watch log. The field `*`
        changes with every trimming.
        """
        return self._join("trimmed")

    def trim_marks(self) -> str:
        """Sorted set of values of the resourceVersion counter by time (ms), for trimming by age."""
        return self._join("trim_marks")

    def store_stats(self) -> str:
        """Hash: counters of the store, e.g. of writes refused by a fence."""
        return self._join("store", "stats")

    def replicated(self) -> str:
        """String: the replication id of the server, written before each wait for replicas."""
        return self._join("replicated")

    def replicas_seen(self) -> str:
        """String: the replication id of the server, and how many replicas it had some seconds ago
        at most.
        """
        return self._join("replicas-seen")

    def call(self, call_id: str) -> str:
        """String: the first answer to a call, kept for 60 s."""
        return self._join("call", call_id)

    # --- event bus
    def events(self) -> str:
        """Stream: the event bus, to which injected events are added."""
        return self._join("events")

    def dead_events(self) -> str:
        """Stream: dead letters, which are refused events with the reason and their fields."""
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
        """List: an element wakes the pump before its earliest known due time."""
        return self._join("pump", "wake")

    def expectations(self, controller: str, key: str) -> str:
        """Hash: names or uids of objects whose creation or deletion a controller expects."""
        return self._join("expectations", controller, key)

    def limiter(self, name: str) -> str:
        """Hash: qps, burst, tokens and at (ms) of a token bucket from which writes take tokens."""
        return self._join("limiter", name)

    def memory(self, controller: str, key: str) -> str:
        """Hash: the memory of a controller about one key, from sync to sync."""
        return self._join("memory", controller, key)

    def dispatch_position(self) -> str:
        """Hash by resource: the resourceVersion up to which its keys were dispatched."""
        return self._join("dispatch", "position")

    # --- coordination
    def token(self) -> str:
        """String: the counter that is the source of every fencing token."""
        return self._join("token")

    def leading(self) -> str:
        """String that expires: this kcm leads on the API server whose objects it works on."""
        return self._join("leading")

    def lease(self, name: str) -> str:
        """Hash: holder, token, expires (ms) of one internal lease."""
        return self._join("lease", name)

    def tick_state(self, loop: str) -> str:
        """Hash: the state of a periodic loop between its passes."""
        return self._join("tick", loop)

    def workers(self) -> str:
        """Hash by process identity: its last heartbeat and its description."""
        return self._join("workers")

    def apiservers(self) -> str:
        """Hash by API server: its last heartbeat, and the fingerprints of its public keys."""
        return self._join("apiservers")

    def metrics(self) -> str:
        """Hash: counters of syncs and passes over all processes."""
        return self._join("metrics")

    # --- measurements
    def reported(self, node: str) -> str:
        """Hash that expires: the measurements that a node reports of itself and its pods."""
        return self._join("reported", node)

    def published(self, of: str, metric: str) -> str:
        """Hash by object key, with labels if there are any: the published value of a metric; `of`
        is a resource or `external`.
        """
        return self._join("published", of, metric)

    # --- clouds
    def cloud(self, provider: str, what: str) -> str:
        """One part of the state of a cloud provider that keeps it in Redis, such as `sim`."""
        return self._join("cloud", provider, what)

    # --- simulated nodes
    def simulated_storage(self, what: str) -> str:
        """One part of what scripts the calls to the simulated CSI driver."""
        return self._join("simulation", "storage", what)

    def simulated_output(self, uid: str, container: str, attempt: int) -> str:
        """List that expires: the lines that the program of a simulated container has written."""
        return self._join("simulation", "output", uid, container, str(attempt))

    def broker_stats(self) -> str:
        """Hash by reason: the number of messages that the broker dropped for it."""
        return self._join("broker", "stats")

    def broker_prefix(self) -> str:
        """Returns the prefix of all keys of kombu."""
        return self.prefix + ":celery:"
