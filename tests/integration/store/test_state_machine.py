"""Compares the store with a simple model, under several clients, lost replies and stale
versions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.redisio import RedisIO
from kcm.store import DeleteOptions, Store
from kcm.store.memory import MemoryIO
from kcm.testing.clock import FakeClock
from tests.new_objects import pod

PODS = Pod.resource
NAMES = st.sampled_from(["a", "b", "c", "d"])
CLIENTS = st.integers(0, 1)


class StoreMachine(RuleBasedStateMachine):
    """Two clients of one store; each keeps the version of every object that it read last."""

    connect: Callable[[], Sequence[RedisIO]]  # returns two clients of an empty server

    def __init__(self) -> None:
        super().__init__()
        clients = type(self).connect()
        self.stores = [Store(io, FakeClock()) for io in clients]
        self.model: dict[str, dict[str, str]] = {}  # key to labels
        self.versions: dict[str, int] = {}
        self.held: list[dict[str, KubeObject]] = [{}, {}]
        self.finalized: set[str] = set()
        self.deleting: set[str] = set()

    def _wrote(self, client: int, stored: KubeObject) -> None:
        version = int(stored.metadata.resource_version or 0)
        assert version > max(self.versions.values(), default=0)
        self.versions[stored.key] = version
        self.held[client][stored.key] = stored

    @rule(client=CLIENTS, name=NAMES, finalizer=st.booleans())
    def create(self, client: int, name: str, finalizer: bool) -> None:
        fresh = pod(name)
        if finalizer:
            fresh = fresh.with_metadata(finalizers=["example.com/hold"])
        if fresh.key in self.model:
            with pytest.raises(errors.AlreadyExists):
                self.stores[client].create(fresh)
            return
        self._wrote(client, self.stores[client].create(fresh))
        self.model[fresh.key] = dict(fresh.labels)
        if finalizer:
            self.finalized.add(fresh.key)

    @rule(client=CLIENTS, name=NAMES)
    def read(self, client: int, name: str) -> None:
        key = f"default/{name}"
        if key in self.model:
            self.held[client][key] = self.stores[client].get(PODS, key)
        else:
            with pytest.raises(errors.NotFound):
                self.stores[client].get(PODS, key)

    @rule(client=CLIENTS, name=NAMES, value=st.text("xyz", min_size=1, max_size=2))
    def update_what_it_holds(self, client: int, name: str, value: str) -> None:
        key = f"default/{name}"
        held = self.held[client].get(key)
        if held is None:
            return
        changed = held.with_metadata(labels={"v": value})
        current = int(held.metadata.resource_version or 0) == self.versions.get(key)
        if key not in self.model:
            with pytest.raises(errors.NotFound):
                self.stores[client].update(changed)
        elif not current:
            with pytest.raises(errors.Conflict):
                self.stores[client].update(changed)
        elif self.model[key] != {"v": value}:
            self._wrote(client, self.stores[client].update(changed))
            self.model[key] = {"v": value}

    @rule(client=CLIENTS, name=NAMES)
    def delete(self, client: int, name: str) -> None:
        key = f"default/{name}"
        if key not in self.model:
            with pytest.raises(errors.NotFound):
                self.stores[client].delete(PODS, key)
            return
        stored = self.stores[client].delete(PODS, key, DeleteOptions(grace_period_seconds=0))
        if key in self.finalized:
            if key not in self.deleting:
                self._wrote(client, stored)
            self.deleting.add(key)
        else:
            self._gone(key, stored)

    @rule(client=CLIENTS, name=NAMES)
    def finalize(self, client: int, name: str) -> None:
        key = f"default/{name}"
        if key not in self.finalized:
            return
        stored = self.stores[client].patch(PODS, key, {"metadata": {"finalizers": None}})
        self.finalized.discard(key)
        if key in self.deleting:
            self._gone(key, stored)
        else:
            self._wrote(client, stored)

    def _gone(self, key: str, stored: KubeObject) -> None:
        assert int(stored.metadata.resource_version or 0) > max(self.versions.values())
        del self.model[key], self.versions[key]
        self.finalized.discard(key)
        self.deleting.discard(key)

    @invariant()
    def the_store_is_the_model(self) -> None:
        labels = {obj.key: dict(obj.labels) for obj in self.stores[0].list(PODS).items}
        assert labels == self.model

    @invariant()
    def the_watch_log_replays_to_the_model(self) -> None:
        state: set[str] = set()
        for change in self.stores[0].read_changes({PODS: 0}, 0).entries:
            if change.type == "DELETED":
                state.remove(change.key)
            elif change.type == "ADDED":
                assert change.key not in state
                state.add(change.key)
            else:
                assert change.key in state
        assert state == set(self.model)


def test_the_store_behaves_like_its_model(io: RedisIO) -> None:
    def connect_to_memory() -> Sequence[RedisIO]:
        return [MemoryIO(FakeClock())] * 2

    def connect_to_redis() -> Sequence[RedisIO]:
        clients = [RedisIO(io.settings), RedisIO(io.settings)]
        clients[0].execute("FLUSHALL")
        clients[0].attach()
        return clients

    in_memory = isinstance(io, MemoryIO)
    StoreMachine.connect = connect_to_memory if in_memory else connect_to_redis
    run_state_machine_as_test(StoreMachine, settings=_PROFILE)


_PROFILE = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
