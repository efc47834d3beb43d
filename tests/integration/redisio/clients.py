"""Clients of servers that fail over: a writer, a watch cache and a lease, led by a link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kcm import errors
from kcm.api.scheme import BUILT_IN, Resource
from kcm.coordination import FencedLease
from kcm.informers.follower import Follower
from kcm.redisio import Fence
from kcm.store import Conditions, Store, WatchEntry
from tests.integration.redisio.replicas import Replicas, Server
from tests.new_objects import pod

PODS = BUILT_IN.lookup("pods")


class Cache:
    """The names of the objects of a kind, with their resourceVersions, as a watch shows them."""

    def __init__(self, store: Store, kind: Resource = PODS) -> None:
        self._store, self._kind = store, kind
        self._follower = Follower(store, self, [kind])
        self.versions: dict[str, int] = {}

    def list_kinds(self, kinds: Sequence[Resource]) -> Mapping[Resource, int]:
        listed = self._store.list_all(self._kind)
        self.versions = {o.name: int(o.metadata.resource_version or 0) for o in listed.objects}
        return {self._kind: listed.resource_version}

    def apply_changes(
        self, kind: Resource, changes: Sequence[WatchEntry], resource_version: int
    ) -> None:
        for change in changes:
            name = change.key.partition("/")[2]
            if change.type == "DELETED":
                self.versions.pop(name, None)
            else:
                self.versions[name] = change.resource_version

    def read(self, patience: float) -> bool:
        """Reads the watch once. Returns whether nothing had changed. Raises: Temporary."""
        return self._follower.read(patience) == 0 and not self._follower.is_listing


class Client:
    """One process that writes, watches and holds a lease."""

    def __init__(self, replicas: Replicas, name: str) -> None:
        self.name = name
        self._replicas = replicas
        self._link = replicas.folder / f"{name}.sock"
        self.lead()
        self.io = replicas.connect(self._link)
        self.store = Store(self.io)
        self.cache = Cache(self.store)
        self.fence: Fence | None = None

    def lead(self, server: Server | None = None) -> None:
        """Leads new connections to a server, the master unless another is given."""
        self._replicas.lead_to(server or self._replicas.master, self._link)

    def create(self, name: str, fence: Fence | None = None) -> int:
        """Creates a pod and returns its resourceVersion. Raises: Temporary, Fenced."""
        created = self.store.create(pod(name), Conditions(fence=fence))
        return int(created.metadata.resource_version or 0)

    def acquire(self) -> str:
        """Acquires the client's lease under a new token, and returns that. Raises: Temporary."""
        lease = FencedLease(self.io, self.name, self.name)
        assert lease.try_acquire()
        self.fence = lease.fence
        return self.fence.token

    def read(self) -> bool:
        """Reads the watch once. Returns whether it was read and nothing had changed."""
        try:
            return self.cache.read(0)
        except errors.Temporary:
            return False

    def catch_up(self) -> None:
        """Reads until twice nothing has changed: the first read may have been of another server."""
        quiet = 0
        for _ in range(30):
            quiet = quiet + 1 if self.read() else 0
            if quiet == 2:
                return
        raise AssertionError("the watch cannot be read")


def stored_versions(server: Server, kind: Resource = PODS) -> dict[str, int]:
    """Returns the names of the objects of a kind that a server stores, with their
    resourceVersions.
    """
    keys: Any = server.client.zrange(f"kcm:keys:{kind.name}", 0, -1)
    with server.client.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.hget(f"kcm:object:{kind.name}:{key.decode()}", "rv")
        versions = pipe.execute()
    return {k.decode().partition("/")[2]: int(v or 0) for k, v in zip(keys, versions, strict=True)}
