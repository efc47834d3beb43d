"""The journal: the join of what stores report and what the watch logs have."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Literal

import pytest

from kcm.api.core_v1 import ConfigMap
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.store.watch import ChangeType, WatchEntry
from kcm.store.writes.items import WriteItem, WriteResult, WriteStatus
from kcm.store.writes.observing import Author
from kcm.testing.clock import FakeClock
from kcm.testing.history.journal import Journal

MAPS = ConfigMap.resource
ALICE = Author("user", "alice")
KEY = ("configmaps", "default/a")


def report(
    journal: Journal,
    number: int,
    data: str = "x",
    op: Literal["create", "update", "delete"] = "update",
    status: WriteStatus = WriteStatus.OK,
) -> None:
    """Lets a store report a write of the ConfigMap default/a."""
    item = WriteItem(op, MAPS, ConfigMap(metadata=_meta(), data={"d": data}), part="status")
    journal.note(ALICE, [(item, item.encode())], [WriteResult(item, status, str(number))])


def read(journal: Journal, number: int, data: str = "x", event: ChangeType = "MODIFIED") -> None:
    """Lets a write of the ConfigMap default/a be read from the watch log."""
    raw = json.dumps({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"d": data}})
    journal.read([WatchEntry(MAPS, number, event, "default/a", raw.encode())])


def _meta() -> ObjectMeta:
    return ObjectMeta(name="a", namespace="default", uid="u")


def versions(journal: Journal, after: int = 0) -> list[int]:
    return [entry.resource_version for entry, _ in journal.after(after)]


def data_of(raw: bytes | None) -> Any:
    return raw and json.loads(raw)["data"]["d"]


def test_a_reported_write_has_its_author_time_and_object() -> None:
    clock = FakeClock()
    clock.step(5)
    journal = Journal(clock)
    report(journal, 7, op="create")
    ((entry, before),) = journal.after(0)
    assert (entry.author, entry.part, entry.event, before) == (ALICE, "status", "ADDED", None)
    assert entry.time == clock.now()
    assert entry.load()["metadata"]["resourceVersion"] == "7"


@pytest.mark.parametrize("status", [one for one in WriteStatus if one is not WriteStatus.OK])
def test_what_was_not_written_is_not_in_it(status: WriteStatus) -> None:
    journal = Journal(FakeClock())
    report(journal, 1, status=status)
    assert versions(journal) == []


@pytest.mark.parametrize("first", ["report", "read"])
def test_a_write_is_there_once_whichever_comes_first(first: str) -> None:
    journal = Journal(clock := FakeClock())
    for step in (report, read) if first == "report" else (read, report):
        clock.step(1)
        step(journal, 3)
    ((entry, _),) = journal.after(0)
    assert entry.author == ALICE
    assert entry.time == clock.now() - timedelta(seconds=first == "report")


def test_a_write_that_no_store_reported_has_no_author() -> None:
    journal = Journal(FakeClock())
    read(journal, 3)
    assert [entry.author for entry, _ in journal.after(0)] == [None]


def test_writes_are_in_the_order_of_the_store_with_the_state_before_them() -> None:
    journal = Journal(FakeClock())
    report(journal, 9, "three")
    read(journal, 2, "one", "ADDED")
    report(journal, 5, "two")
    assert versions(journal) == [2, 5, 9]
    assert [data_of(before) for _, before in journal.after(0)] == [None, "one", "two"]
    assert versions(journal, 5) == [9]
    assert [entry.resource_version for entry, _ in journal.of(KEY)] == [2, 5, 9]


def test_an_object_that_comes_again_had_no_state_before() -> None:
    journal = Journal(FakeClock())
    report(journal, 1, op="create")
    report(journal, 2, op="delete")
    report(journal, 3, op="create")
    assert [before is None for _, before in journal.after(0)] == [True, False, True]


@pytest.mark.parametrize("limits", [{"max_writes": 10}, {"max_bytes": 1500}])
def test_old_writes_are_dropped_and_counted_but_the_state_before_is_kept(
    limits: dict[str, int],
) -> None:
    journal = Journal(FakeClock(), **limits)
    for number in range(1, 101):
        report(journal, number, f"{number:03}")
    kept = versions(journal)
    assert 5 <= len(kept) <= 10
    assert kept == list(range(101 - len(kept), 101))
    assert journal.dropped == journal.dropped_to == 100 - len(kept)
    assert data_of(journal.after(0)[0][1]) == f"{kept[0] - 1:03}"
    report(journal, 1)
    assert versions(journal) == kept
    assert journal.has(1)
    assert not journal.has(101)
