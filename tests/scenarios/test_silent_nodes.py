"""Nodes that go silent, with real workers, beat and manager; nodes are objects made by hand.

A heart renews the leases of those that live. Times are short flags: a look every second, a
grace of four.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from kcm import errors
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Event, Node, Pod, Toleration
from kcm.api.policy_v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import LabelSelector, ObjectMeta
from kcm.cli.evictions import MONITOR
from kcm.coordination.workqueue import read_stats
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing import builders
from kcm.testing.waiting import PATIENCE, let_time_pass, until
from tests.chaos.cluster import Cluster
from tests.new_objects import make_namespaces, strip_store_fields

pytestmark = pytest.mark.scenario

NODES = Node.resource
PODS = Pod.resource
LEASES = Lease.resource
GRACE, PERIOD, BEAT = 4.0, 1.0, 0.5  # seconds
ZONE = "topology.kubernetes.io/zone"


class Heart(threading.Thread):
    """Renews the lease of every node that is not silent, every BEAT."""

    def __init__(self, url: str, names: list[str]) -> None:
        super().__init__(daemon=True)
        self._io = RedisIO(Settings(redis_url=url))
        self._store = Store(self._io)
        self.names = names
        self.silent: set[str] = set()
        self.beats = 0  # rounds over all nodes
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(BEAT):
            for name in self.names:
                # The next beat does what a missing server or a controller's write kept this from.
                with suppress(errors.Temporary, errors.Conflict):
                    self._io.attach()
                    self._beat(name)
            self.beats += 1

    def _beat(self, name: str) -> None:
        if name in self.silent:
            return
        old = self._store.get(LEASES, f"kube-node-lease/{name}")
        assert isinstance(old, Lease)
        self._store.update(old.with_spec(old.spec.replace(renew_time=datetime.now(UTC))))
        self._revive(name)

    def _revive(self, name: str) -> None:
        """What a kubelet says first when it is back."""
        node = self._store.get(NODES, name)
        assert isinstance(node, Node)
        if _ready(node) != "True":
            alive = builders.node(name).status.conditions
            assert alive is not None
            stamp = datetime.now(UTC).replace(microsecond=0)
            conditions = [
                c.replace(last_heartbeat_time=stamp, last_transition_time=stamp) for c in alive
            ]
            self._store.update_status(node.with_status(node.status.replace(conditions=conditions)))

    def close(self) -> None:
        self.stopped.set()
        self.join(PATIENCE)
        self._io.close()


class Fleet:
    """A cluster of processes, and its nodes."""

    def __init__(self, **flags: str) -> None:
        self.cluster = Cluster(workers=2, beats=1)
        self.store = self.cluster.store
        self.cluster.environment = {
            "KCM_NODE_MONITOR_PERIOD": f"{PERIOD}s",
            "KCM_NODE_MONITOR_GRACE_PERIOD": f"{GRACE}s",
            "KCM_NODE_EVICTION_RATE": "0.5",
            **flags,
        }
        self.heart: Heart | None = None
        make_namespaces(self.store, "default", "kube-node-lease")

    def start(self, *zones: str) -> None:
        """A node per letter: `start("aaabb")` makes a0, a1, a2, b0, b1."""
        names = []
        for word in zones:
            for number, zone in enumerate(word):
                names.append(f"{zone}{number}")
                self.store.create(strip_store_fields(builders.node(names[-1], labels={ZONE: zone})))
                lease = builders.lease(names[-1], namespace="kube-node-lease")
                self.store.create(strip_store_fields(lease))
        self.heart = Heart(self.cluster.server.url, names)
        self.heart.start()
        self.cluster.start()
        until(lambda: self.count_known_nodes() == len(names), "the first look at the nodes")

    def wait_for_beats(self, count: int) -> None:
        """Waits until the heart has beaten so many times more."""
        assert self.heart is not None
        enough = self.heart.beats + count
        until(lambda: self.heart and self.heart.beats >= enough, f"{count} beats of the heart")

    def wait_for_passes(self, count: int) -> None:
        """Waits until the node monitor has looked at all nodes so many times more.

        Passes are PERIOD seconds apart; each leaves the time when it began in Redis.
        """
        seen = {self._last_pass()}

        def were_enough() -> bool:
            seen.add(self._last_pass())
            return len(seen) > count

        until(were_enough, f"{count} passes of the node monitor")

    def _last_pass(self) -> bytes | None:
        io = self.cluster.io
        began: bytes | None = io.execute("HGET", io.keys.tick_state(MONITOR), "last")
        return began

    def count_known_nodes(self) -> int:
        events = self.store.list(BUILT_IN.lookup("events")).items
        return sum(isinstance(e, Event) and e.reason == "RegisteredNode" for e in events)

    def go_dark(self, *letters: str) -> float:
        assert self.heart is not None
        self.heart.silent = {name for name in self.heart.names if name.startswith(letters)}
        return time.monotonic()

    def come_back(self) -> None:
        assert self.heart is not None
        self.heart.silent = set()

    def pod(self, name: str, node: str, seconds: int | None = None, **fields: Any) -> None:
        tolerations = [
            Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect="NoExecute",
                       toleration_seconds=seconds)
            for key in ("unreachable", "not-ready") if seconds is not None
        ]  # fmt: skip
        pod = builders.pod(
            name, node=node, phase="Running", ready=True, tolerations=tolerations, **fields
        )
        stored = self.store.create(strip_store_fields(pod))
        self.store.update_status(stored.with_status(pod.status))

    def nodes(self) -> dict[str, Node]:
        return {n.name: n for n in self.store.list(NODES).items if isinstance(n, Node)}

    def unknown(self) -> set[str]:
        return {name for name, node in self.nodes().items() if _ready(node) == "Unknown"}

    def list_tainted(self) -> set[str]:
        return {name for name, node in self.nodes().items() if _taints(node, "NoExecute")}

    def list_deleting(self) -> set[str]:
        return {pod.name for pod in self.store.list(PODS).items if pod.deleting}

    def patience(self, node: str, pod: str) -> float:
        """Seconds from the node's NoExecute taint to the pod's eviction, by their stamps."""
        taints = self.nodes()[node].spec.taints or ()
        (since,) = [taint.time_added for taint in taints if taint.effect == "NoExecute"]
        object_meta = self.store.get(PODS, f"default/{pod}").metadata
        assert object_meta.deletion_timestamp is not None
        assert since is not None
        left = object_meta.deletion_timestamp - since
        return left.total_seconds() - (object_meta.deletion_grace_period_seconds or 0)

    def count_delayed(self, controller: str) -> int:
        """How many keys of a controller wait for their time."""
        return sum(s.delayed for s in read_stats(self.cluster.io) if s.name == controller)

    def messages_of(self, reason: str) -> list[str]:
        events = self.store.list(BUILT_IN.lookup("events")).items
        return [e.message or "" for e in events if isinstance(e, Event) and e.reason == reason]

    def stop(self) -> None:
        if self.heart is not None:
            self.heart.close()
        self.cluster.stop()


def _ready(node: Node) -> str:
    return next((c.status for c in node.status.conditions or () if c.type == "Ready"), "")


def _taints(node: Node, effect: str) -> list[str]:
    return [t.key for t in node.spec.taints or () if t.effect == effect]


Launch = Callable[..., Fleet]


@pytest.fixture
def launch() -> Iterator[Launch]:
    fleets: list[Fleet] = []

    def make(*zones: str, **flags: str) -> Fleet:
        fleet = Fleet(**flags)
        fleets.append(fleet)
        fleet.start(*zones)
        return fleet

    yield make
    for fleet in fleets:
        fleet.stop()


def test_a_silent_node_loses_its_pods_at_the_right_second(launch: Launch) -> None:
    fleet = launch("aaaaa")
    fleet.pod("at-once", "a0", 0)  # without a word, 300 s are its due
    fleet.pod("in-three", "a0", 3)
    fleet.pod("in-an-hour", "a0", 3600)
    fleet.pod("elsewhere", "a1")
    fleet.go_dark("a0")
    until(lambda: "a0" in fleet.unknown(), "the mark")
    until(lambda: "a0" in fleet.list_tainted(), "the taint")
    assert [t.effect for t in fleet.nodes()["a0"].spec.taints or ()] == ["NoSchedule", "NoExecute"]
    until(lambda: "at-once" in fleet.list_deleting(), "the first eviction")
    until(lambda: "in-three" in fleet.list_deleting(), "the second eviction")
    assert fleet.patience("a0", "in-three") >= 3
    assert fleet.unknown() == {"a0"}
    fleet.come_back()
    until(lambda: not fleet.nodes()["a0"].spec.taints, "the return")
    until(lambda: len(fleet.messages_of("TaintManagerEviction")) == 3, "the cancelling")
    assert sorted(fleet.messages_of("TaintManagerEviction")) == [
        "Cancelling deletion of Pod default/in-an-hour",
        "Marking for deletion Pod default/at-once",
        "Marking for deletion Pod default/in-three",
    ]
    assert fleet.list_deleting() == {"at-once", "in-three"}


@pytest.mark.long
def test_a_node_that_returns_in_time_keeps_its_pods(launch: Launch) -> None:
    fleet = launch("aaaaa")
    fleet.pod("patient", "a0", 60)
    fleet.go_dark("a0")
    until(lambda: fleet.count_delayed("tainteviction") == 1, "the eviction that waits")
    fleet.come_back()
    until(lambda: "a0" not in fleet.list_tainted(), "the return")
    until(lambda: fleet.messages_of("TaintManagerEviction"), "the cancelling")
    assert fleet.messages_of("TaintManagerEviction") == [
        "Cancelling deletion of Pod default/patient"
    ]
    assert fleet.list_deleting() == set()


@pytest.mark.long
def test_a_control_plane_that_was_away_blames_no_node(launch: Launch) -> None:
    fleet = launch("aaa", "bbb")
    assert fleet.heart is not None
    processes = [*fleet.cluster.workers, *fleet.cluster.beats]
    family = [p for process in processes for p in (process, *process.children(recursive=True))]
    fleet.go_dark("a", "b")  # nor did anybody hear the nodes
    for process in family:
        process.send_signal(signal.SIGKILL)
    let_time_pass(2.5 * GRACE, "nobody looks at the nodes for longer than their grace")
    fleet.cluster.start()
    fleet.wait_for_passes(2)
    fleet.come_back()
    assert_only_one_is_blamed(fleet, "a0")


def assert_only_one_is_blamed(fleet: Fleet, name: str) -> None:
    """Silences one node, and checks that no other was marked until it is, however briefly."""
    fleet.go_dark(name)
    until(lambda: fleet.messages_of("NodeNotReady"), "a mark all the same")
    assert fleet.messages_of("NodeNotReady") == [f"Node {name} status is now: NodeNotReady"]
    assert fleet.unknown() == {name}


@pytest.mark.long
def test_a_server_that_was_away_blames_no_node(launch: Launch) -> None:
    fleet = launch("aaa", "bbb")
    server = fleet.cluster.server.process
    assert server is not None
    server.send_signal(signal.SIGSTOP)
    let_time_pass(2.5 * GRACE, "the server stands still for longer than the nodes' grace")
    server.send_signal(signal.SIGCONT)
    fleet.wait_for_passes(3)
    assert fleet.messages_of("NodeNotReady") == []
    fleet.cluster.restart_server()
    assert_only_one_is_blamed(fleet, "a0")


@pytest.mark.long
def test_workers_killed_in_the_midst_taint_nobody_twice(launch: Launch) -> None:
    fleet = launch("aaaa", "bbbbbbbb")
    since = fleet.store.resource_version()
    fleet.go_dark("a")
    until(lambda: bool(fleet.unknown()), "the first mark")
    began = time.monotonic()
    while time.monotonic() - began < 10:
        for child in fleet.cluster.children():
            child.send_signal(signal.SIGKILL)
        let_time_pass(1.7, "out of step with the passes: each kill comes at another moment")
    until(lambda: len(fleet.list_tainted()) == 4, "all taints")
    assert _count_taints(fleet.store, since) == {"a0": 1, "a1": 1, "a2": 1, "a3": 1}
    assert fleet.unknown() == {"a0", "a1", "a2", "a3"}


def _count_taints(store: Store, since: int) -> dict[str, int]:
    """How often each node got a NoExecute taint, by the watch log."""
    before: dict[str, bool] = {}
    counts: dict[str, int] = {}
    for change in store.read_changes({NODES: since}, 0).entries:
        node = Node.model_validate_json(change.raw)
        tainted = bool(_taints(node, "NoExecute"))
        if tainted and not before.get(node.name):
            counts[node.name] = counts.get(node.name, 0) + 1
        before[node.name] = tainted
    return counts


def test_direct_eviction_needs_no_taints(launch: Launch) -> None:
    fleet = launch("aaaaa", KCM_ENABLE_TAINT_MANAGER="false", KCM_POD_EVICTION_TIMEOUT="6s")
    fleet.pod("patient", "a0", 3600)
    gone = fleet.go_dark("a0")
    until(lambda: fleet.list_deleting() == {"patient"}, "the eviction")
    assert time.monotonic() - gone > 5
    assert fleet.list_tainted() == set()


def test_a_budget_follows_its_pods(launch: Launch) -> None:
    fleet = launch("aaa")
    for number in range(3):
        fleet.pod(f"w{number}", f"a{number}", labels={"app": "web"})
    fleet.store.create(
        PodDisruptionBudget(
            metadata=ObjectMeta(name="web", namespace="default"),
            spec=PodDisruptionBudgetSpec(
                min_available=2, selector=LabelSelector(match_labels={"app": "web"})
            ),
        )
    )
    until(lambda: _get_allowed_disruptions(fleet) == 1, "the first status")
    fleet.go_dark("a0")
    until(lambda: _get_allowed_disruptions(fleet) == 0, "the loss of a pod")


def _get_allowed_disruptions(fleet: Fleet) -> int:
    budget = fleet.store.get(PodDisruptionBudget.resource, "default/web")
    assert isinstance(budget, PodDisruptionBudget)
    return budget.status.disruptions_allowed
