import pytest

from kcm.errors import EpochChanged, StoreUnavailable
from kcm.informers.shared_informer import SharedIndexInformer
from kcm.informers.views import metadata_view
from tests.unit.informers.fakes import NODES, PODS, REPLICASETS, World, read_cache


def test_one_read_serves_all_kinds() -> None:
    world = World(block_ms=1500)
    pods, nodes = world.informer(PODS), world.informer(NODES)
    pods.start(world.multiplexer)
    nodes.start(world.multiplexer)
    world.turn()
    world.source.put("a/one"), world.source.put("n1", NODES)
    world.turn()
    # Who waits for a list gets it at once, not after a wait for changes.
    assert world.source.reads == [({PODS: 0, NODES: 0}, 0), ({PODS: 0, NODES: 0}, 1500)]
    assert (read_cache(pods), read_cache(nodes)) == ({"a/one": "1"}, {"n1": "2"})


def test_a_kind_that_cannot_be_listed_does_not_stop_the_others() -> None:
    world = World()
    world.source.put("a/one")
    nodes, pods = world.informer(NODES), world.informer(PODS)
    nodes.start(world.multiplexer)
    pods.start(world.multiplexer)
    world.source.list_errors = [RuntimeError("no nodes")]
    world.turn()
    assert (nodes.has_synced(), pods.has_synced()) == (False, True)
    world.turn()
    positions, block_ms = world.source.reads[-1]
    assert positions == {PODS: 1}
    assert 100 <= block_ms <= 150  # not beyond the nodes' next attempt
    world.clock.step(2)
    world.turn()
    assert nodes.has_synced()


def test_while_the_store_is_away_positions_are_kept() -> None:
    world = World()
    world.source.put("a/one")
    informer = world.start_informer()
    world.source.read_errors = [StoreUnavailable()] * 10
    world.turn(10)
    assert world.observer.seen[-1] == "failed  read"
    world.source.put("a/two")
    world.turn()
    assert read_cache(informer) == {"a/one": "1", "a/two": "2"}
    assert world.source.lists == [PODS]


def test_a_store_that_is_away_at_the_first_list_is_tried_again() -> None:
    world = World()
    world.source.list_errors = [StoreUnavailable()]
    informer = world.start_informer()
    assert not informer.has_synced()
    world.turn()
    assert informer.has_synced()


def test_a_new_epoch_lists_all_kinds_at_once() -> None:
    world = World()
    for resource in (PODS, NODES):
        world.informer(resource).start(world.multiplexer)
    world.turn()
    world.source.read_errors = [EpochChanged()]
    world.turn(2)
    assert world.source.lists == [PODS, NODES, PODS, NODES]
    assert world.clock.monotonic() == 0.0


def test_an_unexpected_error_is_the_hosts_and_nothing_is_lost() -> None:
    world = World()
    informer = world.start_informer()
    world.source.read_errors = [RuntimeError("surprise")]
    with pytest.raises(RuntimeError, match="surprise"):
        world.multiplexer.turn(1.0)
    assert world.observer.seen[-1] == "failed  read"
    world.source.put("a/one")
    world.turn()
    assert read_cache(informer) == {"a/one": "1"}


def test_a_burst_is_merged_unless_a_sync_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(merge_seconds=0.002)
    world.start_informer()
    world.turn()
    assert world.clock.monotonic() == 0.0
    world.source.put("a/one")
    world.turn()
    assert world.clock.monotonic() == pytest.approx(0.002)
    monkeypatch.setattr(world.progress, "has_waiters", lambda: True)
    world.source.put("a/one")
    world.turn()
    assert world.clock.monotonic() == pytest.approx(0.002)


def test_reads_that_follow_each_other_are_slowed_once_a_few_came_at_once() -> None:
    world = World(merge_seconds=0.001, read_interval=0.01, read_burst=3)
    world.start_informer()
    ends: list[float] = []
    for _ in range(6):
        world.source.put("a/one")
        world.turn()
        ends.append(round(world.clock.monotonic(), 4))
    assert ends == [0.001, 0.002, 0.012, 0.022, 0.032, 0.042]
    world.clock.step(1)
    world.source.put("a/one")
    world.turn()
    assert round(world.clock.monotonic(), 4) == 1.043


def test_a_thread_that_others_read_for_reads_now_and_then_without_blocking() -> None:
    world = World(pull=True, follow_idle=1.0, follow_busy=0.1, busy_entries=2)
    informer = world.start_informer()
    assert world.clock.monotonic() == 1.0
    world.source.put("a/one")
    world.turn()
    assert world.clock.monotonic() == 2.0
    world.source.put("a/one"), world.source.put("a/two")
    world.turn()
    assert world.clock.monotonic() == pytest.approx(2.1)
    assert {block_ms for _, block_ms in world.source.reads} == {0}
    assert read_cache(informer) == {"a/one": "2", "a/two": "3"}


def test_who_catches_up_reads_only_the_kinds_that_they_name() -> None:
    world = World(pull=True)
    pods, nodes = world.start_informer(PODS), world.start_informer(NODES)
    world.source.put("a/one")
    world.source.put("n1", NODES)
    assert world.multiplexer.catch_up([PODS]) == {PODS: 1}
    assert (read_cache(pods), read_cache(nodes)) == ({"a/one": "1"}, {})
    assert world.source.reads[-1] == ({PODS: 0}, 0)
    world.turn()
    assert read_cache(nodes) == {"n1": "2"}


def test_who_catches_up_lists_what_has_to_be_listed() -> None:
    world = World(pull=True)
    informer = world.start_informer()
    world.source.put("a/one")
    world.source.trim()
    assert world.multiplexer.catch_up([PODS]) == {PODS: 1}  # gone
    assert world.progress.position_of(PODS) == -1
    world.multiplexer.catch_up([PODS])
    assert read_cache(informer) == {"a/one": "1"}


def test_who_catches_up_in_a_new_epoch_gets_all_kinds_listed_again() -> None:
    world = World(pull=True)
    world.start_informer(PODS), world.start_informer(NODES)
    world.source.read_errors = [EpochChanged()]
    assert world.multiplexer.catch_up([PODS]) == {}
    world.multiplexer.catch_up([PODS])
    world.turn()
    assert world.source.lists == [PODS, NODES, PODS, NODES]


def test_what_fails_while_somebody_catches_up_is_theirs() -> None:
    world = World(pull=True)
    world.start_informer()
    world.source.read_errors = [StoreUnavailable("away")]
    with pytest.raises(StoreUnavailable):
        world.multiplexer.catch_up([PODS])


def test_what_follows_a_turn_is_called_after_the_entries_were_handed_out() -> None:
    world = World()
    informer = world.start_informer()
    states: list[dict[str, str | None]] = []
    world.multiplexer.on_turn(lambda: states.append(read_cache(informer)))
    world.source.put("a/one")
    world.turn()
    assert states == [{"a/one": "1"}]


def test_a_bug_in_what_follows_a_turn_is_no_failure_of_the_store() -> None:
    world = World()
    informer = world.start_informer()

    def fail() -> None:
        raise ValueError("a bug")

    world.multiplexer.on_turn(fail)
    world.source.put("a/one")
    world.turn()
    assert read_cache(informer) == {"a/one": "1"}
    assert world.clock.monotonic() == 0.0
    assert not [line for line in world.observer.seen if line.startswith("failed")]


def test_two_informers_of_one_kind_read_from_the_one_further_back() -> None:
    world = World()
    full = world.start_informer()
    world.source.put("a/one")
    partial = SharedIndexInformer(PODS, metadata_view(PODS), world.context)
    partial.start(world.multiplexer)
    world.turn()
    assert world.source.reads[-1][0] == {PODS: 0}
    assert world.observer.seen[-2:] == ["listed pods metadata 1", "watched pods 1"]
    world.source.put("a/one")
    world.turn()
    assert read_cache(full) == {"a/one": "2"}
    assert [o.metadata.resource_version for o in partial.get_store().list()] == ["2"]


def test_without_kinds_a_turn_waits_and_a_new_one_is_listed_next() -> None:
    world = World()
    world.turn()
    assert world.clock.monotonic() == 1.0
    assert world.start_informer(REPLICASETS).has_synced()


def test_a_host_without_patience_does_not_block() -> None:
    world = World()
    world.start_informer()
    world.multiplexer.turn(0.0)
    assert world.source.reads[-1] == ({PODS: 0}, 0)
