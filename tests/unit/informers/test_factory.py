import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kcm.api.core_v1 import Pod
from kcm.clock import RealClock
from kcm.informers.factory import SharedInformerFactory
from kcm.informers.options import InformerOptions
from kcm.loops import ThreadHost
from kcm.testing.clock import FakeClock
from tests.unit.informers.fakes import NODES, PODS, CountingObserver, FakeSource, Recorder


@pytest.fixture
def host() -> Iterator[ThreadHost]:
    host = ThreadHost(patience=0.01)
    yield host
    host.stop()


def factory(source: FakeSource, **given: Any) -> SharedInformerFactory:
    options = InformerOptions(block_ms=10, merge_seconds=0.0, detect_mutations=True)
    return SharedInformerFactory(source, options=options, **given)


def threads() -> list[str]:
    return sorted(t.name for t in threading.enumerate() if t.name.startswith("informer-"))


def test_there_is_one_informer_per_kind_by_model_or_resource() -> None:
    new_factory = factory(FakeSource())
    pods = new_factory.informer_for(Pod)
    assert new_factory.informer_for(PODS) is pods
    assert new_factory.metadata_informer_for(PODS) is new_factory.metadata_informer_for(Pod)
    assert len(new_factory.informers) == 2


def test_nothing_runs_before_start_or_after_shutdown(host: ThreadHost) -> None:
    source = FakeSource()
    source.put("a/one")
    new_factory = factory(
        source, clock=RealClock(), observer=CountingObserver(), rng=random.Random(1)
    )
    recorder = Recorder()
    new_factory.informer_for(PODS).add_event_handler(recorder)
    assert (threads(), source.lists) == ([], [])
    new_factory.start()
    assert threads() == ["informer-pods-Recorder"]
    host.run(new_factory.loop)
    recorder.wait_for(1)
    new_factory.shutdown()
    assert threads() == []
    with pytest.raises(RuntimeError, match="shut down"):
        new_factory.start()


def test_a_late_informer_is_started_by_the_next_start_and_others_only_once(
    host: ThreadHost,
) -> None:
    source = FakeSource()
    new_factory = factory(source)
    stop = threading.Event()
    new_factory.informer_for(PODS)
    new_factory.start()
    host.run(new_factory.loop)
    assert new_factory.wait_for_cache_sync(stop)
    late = new_factory.metadata_informer_for(NODES)
    assert not late.has_synced()
    new_factory.start()
    assert new_factory.wait_for_cache_sync(stop, late)
    assert source.lists == [PODS, NODES]
    new_factory.shutdown()


def test_waiting_for_caches_polls_each_100_ms_and_honours_stop() -> None:
    stop = threading.Event()

    class StoppingClock(FakeClock):
        def wait(self, event: threading.Event, timeout: float) -> bool:
            if self.monotonic() > 0.25:
                event.set()
            return super().wait(event, timeout)

    clock = StoppingClock()
    new_factory = factory(FakeSource(), clock=clock)
    assert not new_factory.wait_for_cache_sync(stop, new_factory.informer_for(PODS))
    assert clock.monotonic() == pytest.approx(0.3)


def test_transforms_are_per_kind(host: ThreadHost) -> None:
    source = FakeSource()
    source.put("a/one", colour="red")
    new_factory = factory(source)

    def drop_labels(pod: Pod) -> Pod:
        return pod.with_metadata(labels=None)

    new_factory.set_transform(Pod, drop_labels)
    new_factory.start()
    host.run(new_factory.loop)
    assert new_factory.wait_for_cache_sync(threading.Event())
    assert new_factory.informer_for(Pod).get_indexer().list()[0].labels == {}
    new_factory.shutdown()


def test_the_barrier_waits_for_the_factorys_caches(host: ThreadHost) -> None:
    source = FakeSource()
    new_factory = factory(source)
    pods = new_factory.informer_for(PODS)
    new_factory.start()
    host.run(new_factory.loop)
    source.put("a/one")
    new_factory.freshness_barrier().wait([PODS], 10, threading.Event())
    assert pods.get_indexer().list()[0].key == "a/one"
    new_factory.shutdown()


def test_mutations_of_all_caches_are_found(host: ThreadHost) -> None:
    source = FakeSource()
    source.put("a/one", colour="red")
    new_factory = factory(source)
    pods = new_factory.informer_for(PODS)
    new_factory.start()
    host.run(new_factory.loop)
    assert new_factory.wait_for_cache_sync(threading.Event())
    new_factory.shutdown()
    assert new_factory.check_mutations() == []
    pods.get_indexer().list()[0].metadata.labels["colour"] = "blue"  # type: ignore[index] # it has some
    assert [str(mutation) for mutation in new_factory.check_mutations()] == [
        "cached pods a/one was mutated: metadata.labels.colour was 'red', is 'blue'"
    ]
