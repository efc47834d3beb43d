from __future__ import annotations

from typing import Any

import pytest

from kcm.testing.faults.fault import Fault, WebhookFault


@pytest.mark.parametrize(
    ("times", "after", "struck"),
    [
        (None, 0, [True] * 6),
        (2, 0, [True, True, False, False, False, False]),
        (2, 3, [False, False, False, True, True, False]),
        (None, 5, [False] * 5 + [True]),
    ],
)
def test_some_pass_and_some_are_hit(times: int | None, after: int, struck: list[bool]) -> None:
    fault = Fault("any", times, after)
    assert [fault.strike() for _ in range(6)] == struck
    assert fault.hits == sum(struck)
    assert fault.used_up is (fault.hits == times)


def test_a_fault_ends_with_its_context() -> None:
    removed: list[Fault] = []
    fault = Fault("any", 2)
    fault.bind(removed.append)
    with fault as entered:
        assert entered.strike()
        assert removed == []
    assert removed == [fault]
    assert (str(fault), repr(fault)) == ("any", "<Fault any, 1 of 2 hits>")


def test_a_context_fails_if_its_fault_was_never_hit() -> None:
    never = "never hit: any; not hit were get by b"
    with pytest.raises(AssertionError, match=never), Fault("any") as fault:
        fault.miss("get by b")
    with pytest.raises(KeyError), Fault("any"):
        raise KeyError
    spared = Fault("any")
    spared.must_hit = False
    with spared:
        assert spared.hits == 0


@pytest.mark.parametrize("error", ["refused", "timeout", 302, 500, 599])
def test_a_webhook_is_known_by_each_of_its_names(error: Any) -> None:
    fault = WebhookFault("checks", error, times=None, after=0)
    names = [("check.example.com", "checks"), ("checks",), ("check",), ()]
    assert [fault.matches(one) for one in names] == [True, True, False, False]
