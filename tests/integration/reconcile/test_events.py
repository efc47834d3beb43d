"""Tests the event recorder over a real store."""

from __future__ import annotations

import uuid

import pytest

from kcm import errors
from kcm.api import core_v1
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile import events
from kcm.reconcile.events import EventRecorder
from kcm.reconcile.plan import Event
from kcm.store import Store
from kcm.testing.builders import node, replica_set
from kcm.testing.clock import FakeClock
from tests.integration.reconcile.conftest import WatchedStore

RS = replica_set()
EVENTS = core_v1.Event.resource


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def recorder(store: WatchedStore, clock: FakeClock) -> EventRecorder:
    return EventRecorder(store, clock)


def say(
    recorder: EventRecorder, message: str = "Created pod: web-1", about: KubeObject = RS
) -> None:
    event = Event(about, "Normal", "SuccessfulCreate", message)
    recorder.record(event, "replicaset-controller")


def list_events(store: Store) -> list[core_v1.Event]:
    return [obj for obj in store.list(EVENTS).items if isinstance(obj, core_v1.Event)]


def test_an_event_says_what_happened_to_what_and_who_says_so(
    recorder: EventRecorder, store: WatchedStore, clock: FakeClock
) -> None:
    say(recorder)
    recorder.flush()
    (event,) = list_events(store)
    assert event.name.startswith("web.")
    assert event.namespace == "default"
    about = event.involved_object
    assert (about.kind, about.name, about.uid) == ("ReplicaSet", "web", RS.uid)
    assert (event.type, event.reason) == ("Normal", "SuccessfulCreate")
    assert (event.message, event.count) == ("Created pod: web-1", 1)
    assert event.source.component == event.reporting_component == "replicaset-controller"
    assert event.first_timestamp == event.last_timestamp == clock.now()


def test_a_long_message_is_cut(recorder: EventRecorder, store: WatchedStore) -> None:
    say(recorder, message="x" * 200_000)
    recorder.flush()
    (event,) = list_events(store)
    assert event.message == "x" * 1000 + "... (200000 characters)"


def test_a_repeat_raises_the_count_of_the_event_there_is(
    recorder: EventRecorder, store: WatchedStore, clock: FakeClock
) -> None:
    for _ in range(2):
        say(recorder)
        recorder.flush()
        clock.step(60)
    (event,) = list_events(store)
    assert event.count == 2
    assert event.first_timestamp is not None
    assert event.last_timestamp is not None
    assert (event.last_timestamp - event.first_timestamp).total_seconds() == 60


def test_events_of_a_burst_are_one_write(recorder: EventRecorder, store: WatchedStore) -> None:
    for number in range(9):
        say(recorder, f"Created pod: web-{number}")
    recorder.flush()
    assert store.calls == [9]
    assert len(list_events(store)) == 9


def test_very_many_become_one(recorder: EventRecorder, store: WatchedStore) -> None:
    for number in range(500):
        say(recorder, f"Created pod: web-{number}")
    recorder.flush()
    events = list_events(store)
    assert len(events) == 10
    (combined,) = (event for event in events if (event.message or "").startswith("(combined"))
    assert combined.count == 16  # 25 in all, nine of them by themselves


def test_a_repeat_of_an_event_that_expired_is_a_new_one(
    recorder: EventRecorder, store: WatchedStore, others: Store
) -> None:
    say(recorder)
    recorder.flush()
    others.delete(EVENTS, list_events(others)[0].key)
    say(recorder)
    recorder.flush()
    (event,) = list_events(store)
    assert event.count == 2


def test_events_about_the_clusters_objects_are_in_the_default_namespace(
    recorder: EventRecorder, store: WatchedStore
) -> None:
    say(recorder, about=node("n1"))
    recorder.flush()
    assert [event.namespace for event in list_events(store)] == ["default"]


def test_when_too_many_wait_the_newest_are_dropped(
    recorder: EventRecorder, store: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MAX_WAITING", 3)
    for number in range(5):
        say(recorder, f"Created pod: web-{number}")
    recorder.flush()
    assert len(list_events(store)) == 3


def test_while_the_store_is_away_recording_goes_on(
    recorder: EventRecorder, store: WatchedStore, clock: FakeClock
) -> None:
    def away() -> None:
        raise errors.StoreUnavailable

    store.meanwhile = away
    say(recorder)
    with pytest.raises(errors.StoreUnavailable):
        recorder.flush()


def test_what_an_outage_kept_is_written_after_it(
    recorder: EventRecorder, store: WatchedStore
) -> None:
    def go_away() -> None:
        raise errors.StoreUnavailable

    say(recorder)
    for _ in range(3):
        store.meanwhile = go_away  # it meddles once each time it is set
        with pytest.raises(errors.StoreUnavailable):
            recorder.turn(0.0)
    assert recorder.turn(0.0).worked
    assert not recorder.turn(0.0).worked
    assert len(list_events(store)) == 1


def test_recording_wakes_the_loop(recorder: EventRecorder) -> None:
    recorder.woken.clear()
    say(recorder)
    assert recorder.woken.is_set()


def test_what_waits_is_written_at_the_end(recorder: EventRecorder, store: WatchedStore) -> None:
    say(recorder)
    recorder.end()
    assert len(list_events(store)) == 1


@pytest.mark.parametrize("name", ["system:nodes", "a" * 250])
def test_events_about_names_that_no_event_may_bear_are_named_by_chance(
    name: str, recorder: EventRecorder, store: WatchedStore
) -> None:
    """Upstream's TestGenerateEventName of client-go/tools/record/util."""
    say(recorder, about=RS.with_metadata(name=name))
    recorder.flush()
    (event,) = list_events(store)
    assert event.name == str(uuid.UUID(event.name))
    assert event.involved_object.name == name
