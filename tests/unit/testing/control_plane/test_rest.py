"""What a control plane says when it has come to rest, and when it does not."""

from __future__ import annotations

from collections import Counter

from kcm.testing.control_plane.rest import build_rest, explain_unrest

YEAR_2030 = 1_893_456_000.0


def test_what_is_pending_comes_in_the_order_of_its_times() -> None:
    rest = build_rest(YEAR_2030, {"later": YEAR_2030 + 60, "soon": YEAR_2030 + 5})
    assert [pending.what for pending in rest.pending] == ["soon", "later"]
    assert str(rest) == "at rest at 2030-01-01T00:00:00Z, next: 2030-01-01T00:00:05Z soon"


def test_a_rest_may_last_for_ever() -> None:
    rest = build_rest(YEAR_2030, {})
    assert rest.next is None
    assert str(rest) == "at rest at 2030-01-01T00:00:00Z, nothing is pending"


def test_an_error_names_what_changed_and_what_was_synced_most_often() -> None:
    changes = Counter({"pods default/a": 7, "pods default/b": 1})
    error = explain_unrest(2.0, changes, Counter({"job-controller default/a": 9}), " It hangs.")
    assert "within 2 s. Most often changed: pods default/a (7x), pods default/b (1x)" in str(error)
    assert "Most often synced: job-controller default/a (9x). It hangs." in str(error)


def test_an_error_says_that_nothing_changed() -> None:
    error = explain_unrest(1.0, Counter(), Counter(), "")
    assert "no object changed. Most often synced: no key was synced" in str(error)
