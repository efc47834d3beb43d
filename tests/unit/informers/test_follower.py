"""One kind after the other is listed, then read on, and listed again where changes are gone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kcm.api.scheme import Resource
from kcm.errors import EpochChanged, StoreUnavailable
from kcm.informers.follower import Follower
from kcm.store import WatchEntry
from tests.unit.informers.fakes import NODES, PODS, FakeSource

ROOT = Path(__file__).parents[3]
# A source, or what reads past changes once; everything else has a follower.
DIRECT = {
    "kcm/cli/objects/delete.py",
    "kcm/informers/follower.py",
    "kcm/informers/source.py",
    "kcm/informers/multiplexer.py",  # the follower of all informers, which have positions each
    "kcm/apiserver/cache/cacher.py",  # what was written while it lists
    "kcm/manager/recovery.py",
    "kcm/store/definitions.py",
    "kcm/store/remote/store.py",
    "kcm/store/store.py",
    "kcm/testing/world.py",  # what a plan has written, in memory
}


class Target:
    """Notes what it is told."""

    def __init__(self, source: FakeSource) -> None:
        self._source = source
        self.told: list[str] = []
        self.fails: list[Exception] = []  # raised by the next changes

    def list_kinds(self, kinds: Sequence[Resource]) -> Mapping[Resource, int]:
        self.told.append(f"list {' '.join(kind.name for kind in kinds)}")
        return {kind: self._source.list_all(kind).resource_version for kind in kinds}

    def apply_changes(
        self, kind: Resource, changes: Sequence[WatchEntry], resource_version: int
    ) -> None:
        if self.fails:
            raise self.fails.pop(0)
        keys = " ".join(change.key for change in changes)
        self.told.append(f"{kind.name} {keys} up to {resource_version}")


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
def target(source: FakeSource) -> Target:
    return Target(source)


@pytest.fixture
def follower(source: FakeSource, target: Target) -> Follower:
    return Follower(source, target, [PODS, NODES])


def test_kinds_are_listed_together_and_then_read_on(
    follower: Follower, source: FakeSource, target: Target
) -> None:
    source.put("a/one")
    assert follower.read(0.5) == 0
    assert not follower.is_listing
    source.put("a/two"), source.put("n1", NODES), source.put("a/two")
    assert follower.read(0.0) == 3
    assert target.told == ["list pods nodes", "pods a/two a/two up to 4", "nodes n1 up to 3"]
    assert source.reads[0] == ({PODS: 1, NODES: 1}, 500)
    assert source.reads[1][1] == 0


def test_a_kind_whose_changes_are_gone_is_listed_again_at_once(
    follower: Follower, source: FakeSource, target: Target
) -> None:
    follower.read(0.0)
    source.put("a/one")
    source.trim()
    target.told.clear()
    follower.read(0.0)
    assert target.told == ["list pods"]
    assert follower.positions[PODS] == 1


def test_a_new_epoch_lists_all_kinds_again(
    follower: Follower, source: FakeSource, target: Target
) -> None:
    follower.read(0.0)
    source.read_errors = [EpochChanged()]
    with pytest.raises(EpochChanged):
        follower.read(0.0)
    follower.read(0.0)
    assert target.told == ["list pods nodes"] * 2


def test_positions_are_kept_while_the_store_is_away(
    follower: Follower, source: FakeSource, target: Target
) -> None:
    follower.read(0.0)
    source.read_errors = [StoreUnavailable()]
    source.put("a/one")
    with pytest.raises(StoreUnavailable):
        follower.read(0.0)
    follower.read(0.0)
    assert target.told == ["list pods nodes", "pods a/one up to 1"]


def test_a_kind_whose_target_fails_is_listed_again_and_others_miss_nothing(
    follower: Follower, source: FakeSource, target: Target
) -> None:
    follower.read(0.0)
    source.put("a/one"), source.put("n1", NODES)
    target.fails = [ValueError("a bug")]
    target.told.clear()
    with pytest.raises(ValueError, match="a bug"):
        follower.read(0.0)
    follower.read(0.0)
    assert target.told == ["list pods", "nodes n1 up to 2"]


def test_changes_during_which_the_store_goes_away_come_again(
    follower: Follower, source: FakeSource, target: Target
) -> None:
    follower.read(0.0)
    source.put("a/one")
    target.fails = [StoreUnavailable()]
    target.told.clear()
    with pytest.raises(StoreUnavailable):
        follower.read(0.0)
    follower.read(0.0)
    assert target.told == ["pods a/one up to 1"]


def test_kinds_come_and_go(follower: Follower, source: FakeSource, target: Target) -> None:
    follower.follow([PODS])
    follower.read(0.0)
    follower.follow([NODES])
    source.put("a/one")
    assert follower.read(0.0) == 0
    assert target.told == ["list pods", "list nodes"]
    assert set(follower.positions) == {NODES}


def test_listing_again_is_asked_for(follower: Follower, target: Target) -> None:
    follower.read(0.0)
    follower.list_again()
    assert follower.is_listing
    follower.read(0.0)
    assert target.told == ["list pods nodes"] * 2


def test_nobody_else_reads_changes() -> None:
    callers = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "kcm").rglob("*.py")
        if re.search(r"\.read_changes\(", file.read_text())
    }
    assert callers == DIRECT
