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
    """The names of the pods, with their resourceVersions, as a watch shows them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.pods: dict[str, int] = {}

    def list_kinds(self, kinds: Sequence[Resource]) -> Mapping[Resource, int]:
        listed = self._store.list_all(PODS)
        self.pods = {obj.name: int(obj.metadata.resource_version or 0) for obj in listed.objects}
        return {PODS: listed.resource_version}

    def apply_changes(
        self, kind: Resource, changes: Sequence[WatchEntry], resource_version: int
    ) -> None:
        for change in changes:
            name = change.key.partition("/")[2]
            if change.type == "DELETED":
                self.pods.pop(name, None)
            else:
                self.pods[name] = change.resource_version


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
        self._follower = Follower(self.store, self.cache, [PODS])
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
            return self._follower.read(0) == 0 and not self._follower.is_listing
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


def stored_pods(server: Server) -> dict[str, int]:
    """Returns the names of the pods that a server stores, with their resourceVersions."""
    listed: Any = server.client.zrange("kcm:keys:pods", 0, -1)
    keys = [key.decode() for key in listed]
    versions = [server.client.hget(f"kcm:object:pods:{key}", "rv") for key in keys]
    return {key.partition("/")[2]: int(rv or 0) for key, rv in zip(keys, versions, strict=True)}
