"""Observers of writes, and who is named as their author."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store.writes import observing
from kcm.store.writes.observing import Author

ALICE = Author("user", "alice")


@pytest.fixture
def io(tmp_path: Path) -> Iterator[RedisIO]:
    io = RedisIO(Settings(state_dir=tmp_path), name="kcm/test")
    yield io
    io.close()


def test_the_author_is_the_one_that_was_named_last_or_the_client(io: RedisIO) -> None:
    assert observing.author_of(io) == Author("component", "kcm/test")
    with observing.acting(ALICE):
        with observing.acting(Author("controller", "job-controller")):
            assert observing.author_of(io).name == "job-controller"
        assert observing.author_of(io) == ALICE
    assert observing.author_of(io).kind == "component"


def test_the_author_is_carried_into_another_thread(io: RedisIO) -> None:
    seen = []

    def look() -> None:
        seen.append(observing.author_of(io).name)

    with observing.acting(ALICE):
        threads = [threading.Thread(target=call) for call in (look, observing.carry(look))]
    for thread in threads:
        thread.start()
        thread.join()
    assert seen == ["kcm/test", "alice"]
    assert observing.carry(look) is look
