"""Tests the deletion of all objects of a kind in a namespace."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.redisio import Fence, RedisIO
from kcm.store import Store
from tests.new_objects import pod, strip_store_fields

PODS = BUILT_IN.lookup("pods")


def test_every_page_goes_and_what_is_elsewhere_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(
        [store.build_create(strip_store_fields(pod(f"p{number}"))) for number in range(1100)]
    )
    other = store.create(strip_store_fields(pod("other", namespace="kube-system")))
    deletion = store.delete_collection(PODS, "default")
    assert (deletion.deleted, deletion.remaining, deletion.clean) == (1100, 0, True)
    assert [obj.key for obj in store.list(PODS).items] == [other.key]


def test_what_is_held_back_is_counted_with_its_reasons(store: Store) -> None:
    store.create(strip_store_fields(pod("free")))
    store.create(strip_store_fields(pod("held", metadata={"finalizers": ["example.com/x"]})))
    store.create(strip_store_fields(pod("bound", node="n1", termination_grace_period_seconds=7)))
    deletion = store.delete_collection(PODS, "default")
    assert (deletion.deleted, deletion.remaining, deletion.grace) == (1, 2, 7)
    assert deletion.finalizers == {"example.com/x": 1}
    again = store.delete_collection(PODS, "default")
    assert (again.deleted, again.remaining) == (0, 2)


@pytest.mark.redis_only
def test_what_cannot_be_read_goes_too(store: Store, io: RedisIO) -> None:
    for name in ("a", "b", "c"):
        store.create(strip_store_fields(pod(name)))
    io.execute("HSET", io.keys.object("pods", "default/b"), "json", b"{")
    deletion = store.delete_collection(PODS, "default")
    assert (deletion.deleted, deletion.remaining) == (3, 0)
    assert store.count(PODS) == 0


def test_a_lost_fence_deletes_nothing(store: Store) -> None:
    store.create(strip_store_fields(pod("a")))
    with pytest.raises(errors.Fenced):
        store.delete_collection(PODS, "default", fence=Fence("none", "x", "1"))
    assert store.count(PODS) == 1
