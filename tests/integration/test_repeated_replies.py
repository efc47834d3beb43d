"""Every reply lost once: each script is sent again, and the world stays exact (design 0002)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import ResourceQuota, ResourceQuotaSpec
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.coordination.workqueue import read_stats
from kcm.manager.context.context import ControllerContext, build_context
from kcm.manager.manager import Manager
from kcm.manager.ticks.runner import TickRunner
from kcm.redisio import RedisIO, scripts
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing.waiting import until
from tests.new_objects import replica_set

PODS = BUILT_IN.lookup("pods")
SETS = BUILT_IN.lookup("rs")


class Repeated:
    """Every script call is carried out twice, as after a lost reply; the second answer counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: Counter[str] = Counter()
        # Below `call`, so that the retries of `call` are part of the test.
        once = RedisIO._evalsha

        def twice(
            io: RedisIO, script: scripts.Script, call_id: str, args: Sequence[Any]
        ) -> list[str] | None:
            self.calls[script.name] += 1
            once(io, script, call_id, args)
            return once(io, script, call_id, args)

        monkeypatch.setattr(RedisIO, "_evalsha", twice)


class Hands:
    """Workers' work, in this process: a thread that syncs whatever waits."""

    def __init__(self, context: ControllerContext) -> None:
        self._runners = [context.runner(controller) for controller in context.controllers
                         if controller.watches()]  # fmt: skip
        self._stop = threading.Event()
        self.failures: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            for runner in self._runners:
                try:
                    while runner.run(""):
                        pass
                except errors.KcmError as error:
                    self.failures.append(str(error))

    def close(self) -> None:
        self._stop.set()
        self._thread.join(5)


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> Repeated:
    return Repeated(monkeypatch)


@pytest.fixture
def context(io: RedisIO, settings: Settings, repeated: Repeated) -> Iterator[ControllerContext]:
    context = build_context(settings)
    manager = Manager(context)
    manager.start()
    hands = Hands(context)
    yield context
    hands.close()
    manager.stop()


def settle(io: RedisIO, store: Store, expected: int) -> None:
    """Waits until there are as many pods, and fails if there are not once all work is done."""
    until(lambda: store.count(PODS) == expected, f"{expected} pods")
    until(lambda: is_at_rest(io), "the end of all work")
    assert store.count(PODS) == expected


def is_at_rest(io: RedisIO) -> bool:
    """Whether every change is dispatched, and no key waits or is synced."""
    positions = io.execute("HGETALL", io.keys.dispatch_position())
    for name in ("pods", "replicasets.apps"):
        newest = io.execute("XREVRANGE", io.keys.watch(name), "+", "-", "COUNT", 1)
        if newest and int(positions.get(name.encode(), 0)) < int(newest[0][0].partition(b"-")[0]):
            return False
    return not any(stats.depth or stats.running for stats in read_stats(io))


def quota(**hard: int) -> ResourceQuota:
    amounts = {name: Quantity(amount) for name, amount in hard.items()}
    meta = ObjectMeta(name="few", namespace="default")
    return ResourceQuota(metadata=meta, spec=ResourceQuotaSpec(hard=amounts))


def get_used(store: Store) -> str:
    obj = store.get(BUILT_IN.lookup("quota"), "default/few")
    assert isinstance(obj, ResourceQuota)
    return str((obj.status.used or {}).get("pods"))


def test_every_script_may_run_twice(context: ControllerContext, repeated: Repeated) -> None:
    store = context.store
    store.create(quota(pods=7))
    until(lambda: get_used(store) == "0")
    store.create(replica_set("web", replicas=7))
    settle(context.io, store, 7)
    assert get_used(store) == "7"  # each was charged once
    store.patch(SETS, "default/web", {"spec": {"replicas": 3}})
    settle(context.io, store, 3)
    for pod in store.list(PODS).items:
        store.delete(PODS, pod.key)
    settle(context.io, store, 3)
    ticks = TickRunner(context)
    for loop in ("podgc", "housekeeping.trim", "housekeeping.events"):
        assert ticks.run(loop, 1000.0)
    store.delete(SETS, "default/web")
    settle(context.io, store, 0)
    seen = [(c.type, c.key) for c in store.read_changes({PODS: 0}, 0).entries]
    assert len(seen) == len(set(seen))
    assert {"store_write", "queue_take", "queue_finish", "queue_dispatch", "tick_begin"} <= set(
        repeated.calls
    )
