"""RemoteStore: the local store's verbs, over a live API server."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.api.scheme import Resource
from kcm.informers.factory import SharedInformerFactory
from kcm.loops import ThreadHost
from kcm.redisio import Fence
from kcm.store import DeleteOptions
from kcm.store.options import Subresource
from kcm.store.remote.kubeconfig import ClusterConnection, load
from kcm.store.remote.rest import JSON, ResponseLines, RestClient
from kcm.store.remote.store import RemoteStore
from kcm.store.remote.work import WorkState
from kcm.store.writes.guards import Absent, Exists, Guard
from kcm.testing.waiting import until
from tests.integration.apiserver.serving import Live
from tests.integration.remote.conftest import HELD
from tests.new_objects import pod, strip_store_fields

PODS = Pod.resource
_NUMBERS = itertools.count()


def a_pod(**fields: Any) -> Pod:
    return strip_store_fields(pod(f"remote-{next(_NUMBERS)}", **fields))


def create(remote: RemoteStore, obj: Pod) -> Pod:
    created = remote.write([remote.build_create(obj)])[0].get_stored()
    assert isinstance(created, Pod)
    return created


def test_a_create_comes_back_as_the_server_stored_it(remote: RemoteStore, api: Live) -> None:
    pod = create(remote, a_pod())
    assert pod == api.store.get(PODS, pod.key)
    assert pod.uid
    assert pod.spec.restart_policy == "Always"


def test_a_generated_name_is_known_before_the_request(remote: RemoteStore) -> None:
    item = remote.build_create(a_pod().with_metadata(name=None, generate_name="made-"))
    assert (item.obj.name or "").startswith("made-")
    assert remote.write([item])[0].get_stored().name == item.obj.name


def test_an_update_of_a_stale_version_conflicts(remote: RemoteStore) -> None:
    old = create(remote, a_pod())
    item = remote.build_update(old.with_metadata(labels={"a": "b"}), old)
    assert item is not None
    assert remote.write([item])[0].ok
    result = remote.write([item])[0]
    assert result.status == "conflict"
    assert isinstance(result.error(), errors.Conflict)


def test_a_status_goes_to_its_subresource(remote: RemoteStore, api: Live) -> None:
    old = create(remote, a_pod())
    new = old.with_status(old.status.replace(phase="Running"))
    item = remote.build_update(new, old, subresource=Subresource.STATUS)
    assert item is not None
    assert remote.write([item])[0].ok
    obj = api.store.get(PODS, old.key)
    assert isinstance(obj, Pod)
    assert obj.status.phase == "Running"


def test_what_changes_nothing_is_no_write(remote: RemoteStore) -> None:
    old = create(remote, a_pod())
    assert remote.build_update(old, old) is None


def test_deletes_name_the_uid_and_happen_once(remote: RemoteStore) -> None:
    old = create(remote, a_pod())
    item = remote.build_delete(old, DeleteOptions())
    assert item is not None
    assert remote.write([item])[0].ok
    assert remote.write([item])[0].status == "notfound"
    again = create(remote, strip_store_fields(pod(old.name or "")))
    assert remote.write([item])[0].status == "uid"
    assert remote.get(PODS, again.key).uid == again.uid


@pytest.mark.parametrize(
    ("guard", "allowed"),
    [
        pytest.param(lambda o: Exists(PODS.name, o.key, o.uid), True, id="exists"),
        pytest.param(lambda o: Exists(PODS.name, o.key, "other"), False, id="another uid"),
        pytest.param(lambda o: Exists(PODS.name, "default/none"), False, id="missing"),
        pytest.param(lambda o: Absent(PODS.name, "default/none"), True, id="absent"),
        pytest.param(lambda o: Absent(PODS.name, o.key), False, id="present"),
        pytest.param(lambda o: Absent(PODS.name, o.key, "other"), True, id="absent by uid"),
    ],
)
def test_guards_are_looked_up_before_the_write(
    remote: RemoteStore, guard: Callable[[Pod], Guard], allowed: bool
) -> None:
    other = create(remote, a_pod())
    item = remote.build_create(a_pod(), (guard(other),))
    result = remote.write([item])[0]
    assert result.ok == allowed
    assert allowed or isinstance(result.error(), errors.GuardFailed)


def test_a_lost_fence_writes_nothing(remote: RemoteStore) -> None:
    obj = a_pod()
    with pytest.raises(errors.Fenced):
        remote.write([remote.build_create(obj)], fence=Fence("queue", "default/web", "2"))
    assert remote.get_all([(PODS, obj.key)]) == [None]
    assert remote.write([remote.build_create(obj)], fence=HELD)[0].ok


def test_one_refusal_does_not_stop_the_others(remote: RemoteStore) -> None:
    good, bad = a_pod(), a_pod().with_metadata(name="Not A Name")
    results = remote.write([remote.build_create(bad), remote.build_create(good)])
    assert [result.ok for result in results] == [False, True]
    assert "Invalid value" in str(results[0].error())


def test_lists_follow_pages_and_watches_follow_lists(
    remote: RemoteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kcm.store.remote.store.PAGE", 2)
    names = {create(remote, a_pod()).key for _ in range(5)}
    listed = remote.list_all(PODS)
    assert names <= {obj.key for obj in listed.objects}
    bound = create(remote, a_pod(node="n1"))
    carriers = remote.list_indexed(PODS, "node:n1").objects
    assert [obj.key for obj in carriers] == [bound.key]
    listed = remote.list_all(PODS)
    late = create(remote, a_pod())
    position = listed.resource_version
    seen: list[tuple[str, str]] = []
    while not seen:
        changes = remote.read_changes({PODS: position}, 5000)
        seen += [(change.type, change.key) for change in changes.entries]
        position = changes.positions[PODS]
    assert seen == [("ADDED", late.key)]
    assert position == int(late.metadata.resource_version or 0)


def test_a_sync_waits_for_the_changes_that_were_dispatched(api: Live) -> None:
    """The process that dispatches watches over another connection, and may be ahead."""
    dispatched: dict[Resource, int] = {}
    client = RestClient(load(api.kubeconfig), "tester")
    store = RemoteStore(client, WorkState(read_positions=lambda kinds: dispatched))
    factory, host, stop = SharedInformerFactory(store), ThreadHost(), threading.Event()
    factory.informer_for(Pod)
    host.run(factory.loop)
    factory.start()
    barrier = factory.freshness_barrier()
    barrier.wait([PODS], 10, stop)  # the cache was listed
    last = create(store, a_pod())
    dispatched[PODS] = int(last.metadata.resource_version or 0)
    barrier.wait([PODS], 10, stop)
    assert factory.informer_for(Pod).get_store().get_by_key(last.key) is not None
    dispatched[PODS] += 1_000_000
    with pytest.raises(errors.CacheNotSynced, match="pods at"):
        barrier.wait([PODS], 0.1, stop)
    host.stop()
    factory.shutdown()
    store.close()


def test_a_watch_from_a_position_ahead_of_the_data_is_gone(api: Live) -> None:
    """After an outage: a restored etcd would let the watch wait for ever."""
    outage = _Outage(load(api.kubeconfig))
    store = RemoteStore(outage, WorkState())
    ahead: dict[Resource, int] = {PODS: 1_000_000_000}
    until(lambda: bool(store.read_changes(ahead, 1000).gone), "a watch that is gone")
    assert outage.refused
    store.close()


class _Outage(RestClient):
    """Fails once to open a watch, as while a server restarts."""

    refused = 0

    @contextmanager
    def lines(
        self, path: str, params: Mapping[str, Any], longest: float, accept: str = JSON
    ) -> Iterator[ResponseLines]:
        if not self.refused:
            self.refused = 1
            raise errors.StoreUnavailable("the server restarts")
        with super().lines(path, params, longest, accept) as lines:
            yield lines


def test_a_position_that_is_too_old_is_reported_as_gone(remote: RemoteStore, api: Live) -> None:
    obj = create(remote, a_pod())
    api.app.cacher.cache(PODS).refill([], int(obj.metadata.resource_version or 0))
    changes = remote.read_changes({PODS: 1}, 5000)
    assert changes.gone == {PODS}


def test_a_server_that_is_away_is_a_temporary_trouble(api: Live) -> None:
    store = RemoteStore(RestClient(ClusterConnection("http://127.0.0.1:1", None)), WorkState())
    with pytest.raises(errors.StoreUnavailable, match=r"127\.0\.0\.1:1"):
        store.get(PODS, "default/a")
    store.close()
