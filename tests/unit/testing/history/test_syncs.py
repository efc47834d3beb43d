"""The log of syncs and refused writes."""

from __future__ import annotations

import pytest

from kcm.store.writes.observing import Author, Refusal, SyncEnd
from kcm.testing.clock import FakeClock
from kcm.testing.history import syncs
from kcm.testing.history.syncs import SyncLog


def end(
    key: str = "n/a", error: str = "", delay: float | None = None, failures: int = 0
) -> SyncEnd:
    return SyncEnd(
        "job-controller", key, "error" if error else "success", 0.1, failures, delay, error
    )


def test_a_sync_says_when_it_is_tried_again_and_why_it_ran() -> None:
    log = SyncLog(FakeClock())
    for number in range(1, 6):
        log.note_wake("job-controller", ["n/a"], f"pods n/p changed (v{number})")
    log.note(end(error="no luck", delay=2.0, failures=2))
    log.note(end())
    first, second = log.of_key("n/a")
    assert str(first) == (
        "00:00:00  job-controller for n/a: error, no luck (failure 3); next at 00:00:02; because "
        "pods n/p changed (v3), pods n/p changed (v4), pods n/p changed (v5)"
    )
    assert second.why == ()
    assert str(second) == "00:00:00  job-controller for n/a: success"


def test_the_last_syncs_of_a_key_are_kept() -> None:
    log = SyncLog(FakeClock())
    for number in range(syncs.KEPT_SYNCS + 1):
        log.note(end(failures=number))
    assert [sync.end.failures for sync in log.of_key("n/a")] == list(range(1, 9))
    assert log.of_key("n/b") == []


def test_the_keys_that_were_synced_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncs, "KEPT_KEYS", 2)
    log = SyncLog(FakeClock())
    for key in ("a", "b", "a", "c"):
        log.note(end(key))
        log.note_wake("x", [key], "why")
    assert [bool(log.of_key(key)) for key in "abc"] == [True, False, True]


def test_refusals_are_found_by_their_object() -> None:
    log = SyncLog(FakeClock())
    author = Author("user", "alice", verb="create")
    log.note_refusal(Refusal(author, "pods", "n", "a", "exceeded quota"))
    (refused,) = log.refused("pods", "n", "a")
    assert str(refused) == "00:00:00  create by alice: exceeded quota"
    assert log.refused("pods", "n", "b") == []
