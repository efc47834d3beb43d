"""Compares the work queue with a simple model, under lost, repeated and late messages.

Time and delays advance in whole kiloseconds only, so that the milliseconds between two calls never
decide a comparison.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kcm.coordination.workqueue import (
    KeyLease,
    Pump,
    QueueConfig,
    Reaper,
    SyncResult,
    SyncStatus,
    WorkQueue,
    renew,
)
from kcm.loops import NEVER
from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.settings import Settings

K = 1000.0  # seconds
CAP, CLAIM, THRESHOLD, BURST = 4, 3, 3, 2
LEASE, LIMIT, BASE, LONGEST, STALL = 2 * K, 4.5 * K, K, 4 * K, 2 * K
CONFIG = QueueConfig(
    task="t",
    broker_queue="b",
    cap=CAP,
    claim=CLAIM,
    threshold=THRESHOLD,
    lease=LEASE,
    renew_limit=LIMIT,
    base_delay=BASE,
    max_delay=LONGEST,
    qps=1 / K,
    burst=BURST,
    stall=STALL,
)
KEYS = st.sampled_from([f"k{i}" for i in range(9)])


@dataclass
class Model:
    """A model of client-go's queue with leases, in plain dictionaries."""

    now: float = 0.0
    waiting: set[str] = field(default_factory=set)
    running: dict[str, str] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)  # the take that each came by
    started: dict[str, float] = field(default_factory=dict)
    expires: dict[str, float] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)
    delayed: dict[str, float] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    tokens: float = BURST
    drawn_at: float = 0.0
    owed: set[str] = field(default_factory=set)  # added and not run since: must not get lost

    def add(self, key: str) -> None:
        self.owed.add(key)
        (self.again if key in self.running else self.waiting).add(key)

    def add_after(self, key: str, delay: float) -> None:
        self.owed.add(key)
        if delay <= 0:
            self.add(key)
        else:
            self.delayed[key] = min(self.delayed.get(key, 1e18), self.now + delay)

    def add_rate_limited(self, key: str) -> float:
        self.failures[key] = self.failures.get(key, 0) + 1
        own: float = min(LONGEST, BASE * 2 ** (self.failures[key] - 1))
        self.tokens = min(BURST, self.tokens + (self.now - self.drawn_at) / K) - 1
        self.drawn_at = self.now
        delay = max(own, -self.tokens * K)
        self.add_after(key, delay)
        return delay

    def claimable(self) -> int:
        if not self.waiting or len(set(self.runs.values())) >= CAP:
            return 0
        size = 1 if len(self.waiting) <= THRESHOLD else CLAIM
        return min(size, len(self.waiting))

    def take(self, key: str, token: str, run: int) -> None:
        self.waiting.remove(key)
        self.owed.discard(key)
        self.running[key] = token
        self.runs[key] = run
        self.started[key] = self.now
        self.expires[key] = self.now + LEASE

    def end_run(self, key: str) -> None:
        for part in (self.running, self.runs, self.started, self.expires):
            del part[key]
        if key in self.again:
            self.again.remove(key)
            self.waiting.add(key)

    def finish(self, key: str, outcome: SyncResult) -> None:
        self.end_run(key)
        if outcome.result is SyncStatus.RETRY:
            self.add_rate_limited(key)
        elif outcome.result is SyncStatus.ABANDON:
            self.add(key)
        else:
            self.failures.pop(key, None)
            if outcome.result is SyncStatus.REQUEUE:
                self.add_after(key, outcome.delay)

    def pump(self) -> None:
        for key in [key for key, due in self.delayed.items() if due <= self.now]:
            del self.delayed[key]
            self.add(key)

    def reap(self) -> None:
        for key in [key for key, end in self.expires.items() if end <= self.now]:
            self.end_run(key)
            self.add(key)


OUTCOMES = st.one_of(
    st.builds(SyncResult.done),
    st.builds(SyncResult.retry),
    st.builds(SyncResult.abandon),
    st.integers(0, 3).map(lambda n: SyncResult.requeue_after(n * K)),
)


class QueueMachine(RuleBasedStateMachine):
    """Applies every rule to the queue and to the model; its invariants compare the two."""

    server: EmbeddedServer

    def __init__(self) -> None:
        super().__init__()
        self.io = RedisIO(Settings(redis_url=self.server.url, state_dir=self.server.state_dir))
        self.io.execute("FLUSHALL")
        self.io.attach()
        self.queue = WorkQueue(self.io, "q")
        self.queue.configure(CONFIG)
        self.model = Model()
        self.leases: list[KeyLease] = []  # all ever taken: the old ones play frozen workers
        self.late: list[str] = []  # messages held back
        self.takes = 0
        self.random = random.Random(0)

    def teardown(self) -> None:
        try:
            self.run_everything()
        finally:
            self.io.close()

    @rule(keys=st.lists(KEYS, min_size=1, max_size=6))
    def add(self, keys: list[str]) -> None:
        self.queue.add(*keys)
        for key in keys:
            self.model.add(key)

    @rule(key=KEYS, delay=st.integers(-1, 4))
    def add_after(self, key: str, delay: int) -> None:
        self.queue.add_after(key, delay * K)
        self.model.add_after(key, delay * K)

    @rule(key=KEYS)
    def add_rate_limited(self, key: str) -> None:
        self.queue.add_rate_limited(key)
        self.model.add_rate_limited(key)

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        self.queue.forget(key)
        self.model.failures.pop(key, None)

    @rule(fate=st.sampled_from(["deliver", "deliver", "deliver", "twice", "lose", "delay"]))
    def message(self, fate: str) -> None:
        raw = self.io.execute("RPOP", self.io.keys.broker_prefix() + "b")
        if raw is None or fate == "lose":
            return
        key = json.loads(json.loads(raw)["body"])[0][0]
        if fate == "delay":
            self.late.append(key)
            return
        for _ in range(2 if fate == "twice" else 1):
            self.take(key)

    @precondition(lambda self: self.late)
    @rule()
    def late_message(self) -> None:
        self.take(self.late.pop(0))

    def take(self, named: str) -> list[KeyLease]:
        expected, named_waits = self.model.claimable(), named in self.model.waiting
        leases = self.queue.take(named)
        self.takes += 1
        assert len(leases) == expected
        if named_waits and expected:
            assert leases[0].key == named
        for lease in leases:
            assert lease.key not in self.model.running, "two holders"
            assert lease.failures == self.model.failures.get(lease.key, 0)
            assert all(int(lease.token) > int(old.token) for old in self.leases)
            self.model.take(lease.key, lease.token, self.takes)
            self.leases.append(lease)
        return leases

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), outcome=OUTCOMES)
    def finish(self, data: st.DataObject, outcome: SyncResult) -> None:
        lease = data.draw(st.sampled_from(self.leases[-6:]))
        holds = self.model.running.get(lease.key) == lease.token
        assert self.queue.finish(lease, outcome).lost is not holds
        if holds:
            self.model.finish(lease.key, outcome)

    @precondition(lambda self: self.leases)
    @rule()
    def renew(self) -> None:
        leases = self.leases[-6:]
        for lease, answer in zip(leases, renew(self.io, leases), strict=True):
            key, model = lease.key, self.model
            if model.running.get(key) != lease.token:
                assert answer == "LOST"
                continue
            limit = model.started[key] + LIMIT
            assert answer == ("OK" if model.now + LEASE < limit else "LIMIT")
            model.expires[key] = min(model.now + LEASE, limit)

    @rule(kiloseconds=st.integers(1, 3))
    def step(self, kiloseconds: int) -> None:
        self.io.clock_offset_ms += int(kiloseconds * K * 1000)
        self.model.now += kiloseconds * K

    @rule()
    def pump(self) -> None:
        turn = Pump(self.io).once()
        self.model.pump()
        assert (turn.due_in == NEVER) == (not self.model.delayed)

    @rule()
    def reap(self) -> None:
        Reaper(self.io).once()
        self.model.reap()

    def run_everything(self) -> None:
        """Checks that time, pump and reaper make every added key run, whatever messages were
        lost.
        """
        for _ in range(60):
            self.step(2)
            self.pump()
            self.reap()
            while raw := self.io.execute("RPOP", self.io.keys.broker_prefix() + "b"):
                for lease in self.take(json.loads(json.loads(raw)["body"])[0][0]):
                    assert not self.queue.finish(lease, SyncResult.done()).lost
                    self.model.finish(lease.key, SyncResult.done())
            self.same_state()
            if not (self.model.waiting or self.model.delayed or self.model.running):
                break
        assert self.model.owed == set(), "lost"

    @invariant()
    def same_state(self) -> None:
        waiting, running, again = (
            self.members("waiting"),
            self.hash("running"),
            self.members("again"),
        )
        assert waiting.keys() == self.model.waiting
        assert running == self.model.running
        assert again.keys() == self.model.again
        assert self.members("leases").keys() == self.hash("starts").keys() == running.keys()
        assert self.hash("failures") == {k: str(n) for k, n in self.model.failures.items()}
        assert not waiting.keys() & running.keys()
        assert again.keys() <= running.keys()
        assert len(set(self.model.runs.values())) <= CAP

    def members(self, part: str) -> dict[str, float]:
        raw = self.io.execute("ZRANGE", self.io.keys.queue("q", part), 0, -1, "WITHSCORES")
        if raw and isinstance(raw[0], bytes):
            raw = list(zip(raw[::2], raw[1::2], strict=True))
        return {key.decode(): float(score) for key, score in raw}

    def hash(self, part: str) -> dict[str, str]:
        raw: dict[bytes, bytes] = self.io.execute("HGETALL", self.io.keys.queue("q", part))
        return {key.decode(): value.decode() for key, value in raw.items()}

    @invariant()
    def due_times_agree(self) -> None:
        delayed = self.members("delayed")
        assert delayed.keys() == self.model.delayed.keys()
        # Scores are the server's time; the model's began at 0 when the test began.
        started = self.model.now * 1000 - self.io.clock_offset_ms
        assert started == 0
        spread = [delayed[key] - due * 1000 for key, due in self.model.delayed.items()]
        assert max(spread, default=0) - min(spread, default=0) < 100_000


def machine(server: EmbeddedServer) -> Any:
    return type("Machine", (QueueMachine,), {"server": server})


def explore(server: EmbeddedServer, examples: int, *, derandomize: bool) -> None:
    run_state_machine_as_test(
        machine(server),
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,  # one step is a handful of round trips
            suppress_health_check=list(HealthCheck),
            derandomize=derandomize,
            database=None,
        ),
    )


def test_the_queue_behaves_as_the_model(redis_server: EmbeddedServer) -> None:
    explore(redis_server, 60, derandomize=True)


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_the_queue_behaves_as_the_model_wherever_one_looks(redis_server: EmbeddedServer) -> None:
    explore(redis_server, 1000, derandomize=False)
