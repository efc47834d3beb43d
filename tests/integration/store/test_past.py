"""What the watch logs have from before a list."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kcm import errors
from kcm.api.core_v1 import ConfigMap, Pod
from kcm.redisio import RedisIO
from kcm.store import Store, past
from kcm.store.past import Past, read_past
from kcm.store.watch import Retention, trim
from kcm.testing.builders import config_map
from tests.new_objects import strip_store_fields

MAPS, PODS = ConfigMap.resource, Pod.resource
MOST = (10_000, 10**7)


pytestmark = pytest.mark.redis_only


def write(store: Store, *names: str) -> list[int]:
    """Creates ConfigMaps, and returns their resourceVersions."""
    made = [store.create(strip_store_fields(config_map(name))) for name in names]
    return [int(obj.metadata.resource_version or 0) for obj in made]


def read(store: Store, most: tuple[int, int] = MOST) -> Past:
    upto = store.resource_version()
    return read_past(store.io, {MAPS: upto, PODS: upto}, *most)[MAPS]


def versions(changes: Past) -> list[int]:
    return [change.resource_version for change in changes.changes]


def test_all_changes_are_read_in_their_order(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "_COUNT", 2)
    written = write(store, "a", "b", "c", "d")
    store.delete(MAPS, "default/b")
    whole = read(store)
    assert versions(whole)[:4] == written
    assert [change.type for change in whole.changes] == ["ADDED"] * 4 + ["DELETED"]
    assert whole.floor < written[0]


def test_what_comes_after_the_list_is_left_out(store: Store) -> None:
    first, second = write(store, "a", "b")
    assert versions(read_past(store.io, {MAPS: first}, *MOST)[MAPS]) == [first]
    assert versions(read_past(store.io, {MAPS: second}, *MOST)[MAPS]) == [first, second]


@pytest.mark.parametrize("most", [(2, 10**7), (100, 800)])
def test_the_newest_are_read_within_a_budget(
    store: Store, most: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "_COUNT", 3)
    written = write(store, "a", "b", "c", "d", "e")
    part = read(store, most)
    read_of = versions(part)
    assert read_of == written[-len(read_of) :]
    assert 0 < len(read_of) < 5
    assert part.floor == written[-len(read_of) - 1]


def test_the_past_ends_where_the_log_was_trimmed(store: Store, io: RedisIO) -> None:
    first, second = write(store, "a", "b")
    trim(io, [MAPS], Retention(timedelta(minutes=5), entries=1))
    assert (read(store).floor, versions(read(store))) == (second - 1, [second])
    trim(io, [MAPS], Retention(timedelta(minutes=5), entries=0))
    assert (read(store).floor, versions(read(store))) == (second, [])
    assert first < second


def test_a_log_that_was_deleted_has_no_past(store: Store, io: RedisIO) -> None:
    *_, last = write(store, "a", "b")
    io.execute("DEL", io.keys.watch("configmaps"))
    assert (read(store).floor, versions(read(store))) == (store.resource_version(), [])
    (later,) = write(store, "c")
    assert (read(store).floor, versions(read(store))) == (last, [later])


def test_a_log_of_another_type_has_no_past(store: Store, io: RedisIO) -> None:
    write(store, "a")
    io.execute("DEL", io.keys.watch("configmaps"))
    io.execute("SET", io.keys.watch("configmaps"), "rubbish")
    assert (read(store).floor, versions(read(store))) == (store.resource_version(), [])


def test_the_past_begins_with_the_epoch(store: Store, io: RedisIO) -> None:
    write(store, "a")
    io.execute("HSET", io.keys.meta(), "run_id", "former")
    with pytest.raises(errors.EpochChanged):
        read_past(other := RedisIO(io.settings), {MAPS: 1}, *MOST)
    other.close()
    io.attach()
    (second,) = write(store, "b")
    assert versions(read(store)) == [second]
    assert read(store).floor == int(io.execute("HGET", io.keys.meta(), "epoch_start"))


def test_what_kcm_did_not_write_is_left_out(store: Store, io: RedisIO) -> None:
    (first,) = write(store, "a")
    log = io.keys.watch("configmaps")
    io.execute("XADD", log, f"{first}-7", "type", "DELETED", "key", "default/a", "object", "{}")
    io.execute("XADD", log, f"{first}-8", "x", "y")
    (second,) = write(store, "b")
    assert versions(read(store)) == [first, second]
