from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.cli.backup_files import backup, restore
from kcm.redisio import RedisIO
from kcm.store import DeleteOptions, Store
from kcm.testing.clock import FakeClock
from tests.new_objects import node, pod, replica_set

pytestmark = pytest.mark.redis_only

PODS = BUILT_IN.lookup("pods")


@pytest.fixture
def file(store: Store, clock: FakeClock, tmp_path: Path) -> Path:
    owner = store.create(replica_set("web"))
    for number in range(30):
        store.create(pod(f"web-{number}", owner=owner, node="n1"))
    store.create(node("n1"))
    store.delete(PODS, "default/web-3")
    path = tmp_path / "objects.jsonl"
    assert backup(store, path, clock.now()) == 33  # the namespace, too
    return path


def test_everything_comes_back_as_it_was(store: Store, io: RedisIO, file: Path) -> None:
    before = {obj.key: obj for obj in store.list(PODS).items}
    io.execute("FLUSHALL")
    assert restore(store, file) == 33
    after = {obj.key: obj for obj in store.list(PODS).items}
    plain = {key: obj.with_metadata(resource_version=None) for key, obj in after.items()}
    assert plain == {key: obj.with_metadata(resource_version=None) for key, obj in before.items()}
    assert after["default/web-3"].deleting
    owner = store.list(BUILT_IN.lookup("rs")).items[0]
    assert len(store.by_index(f"owner:{owner.uid}")) == 30
    store.delete(PODS, "default/web-3", DeleteOptions(grace_period_seconds=0))


def test_a_store_with_objects_is_left_alone(store: Store, file: Path) -> None:
    with pytest.raises(errors.Conflict, match="the store is not empty"):
        restore(store, file)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "line "),
        (lambda text: "rubbish\n" + text, "is not a backup of kcm"),
        (lambda text: text.replace('"format": 1', '"format": 9'), "format 9, newer"),
        (lambda _: "", "is not a backup of kcm"),
    ],
)
def test_a_damaged_file_restores_nothing(
    store: Store, io: RedisIO, file: Path, damage: Callable[[str], str], message: str
) -> None:
    file.write_text(damage(file.read_text()))
    io.execute("FLUSHALL")
    with pytest.raises(errors.BadRequest, match=message):
        restore(store, file)
    assert store.count(PODS) == 0
