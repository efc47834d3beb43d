from __future__ import annotations

from dataclasses import replace

from kcm import errors
from kcm.apiserver.egress.breaking import CallBreak
from kcm.apiserver.filters.fault_rules import RequestFacts
from kcm.testing.clock import FakeClock
from kcm.testing.control_plane.clock import PlaneClock
from kcm.testing.faults.answers import ErrorCode
from kcm.testing.faults.fault import ApiFault, ExpiryFault, WebhookFault
from kcm.testing.faults.rules import ActiveFaults
from kcm.testing.faults.target import Target

FACTS = RequestFacts("update", "", "configmaps", "", "default", "a", "me", "tool/1")
WATCH = replace(FACTS, verb="watch", name="", version="7")


def fault(error: ErrorCode | None, latency: float = 0.0, times: int | None = None) -> ApiFault:
    return ApiFault(Target(), error, latency=latency, retry_after=1, times=times, after=0)


def test_without_faults_nothing_is_asked() -> None:
    rules = ActiveFaults(FakeClock())
    seen = [rules.active]
    added = rules.add(fault(500))
    seen.append(rules.active)
    added.remove()
    seen.append(rules.active)
    assert seen == [False, True, False]


def test_the_first_error_strikes_after_all_latencies_before_it() -> None:
    rules = ActiveFaults(FakeClock())
    for one in (fault(None, 0.5), fault(429, 0.25), fault(500)):
        rules.add(one)
    outcome = rules.find_outcome(FACTS)
    assert outcome is not None
    assert outcome.latency == 0.75
    assert isinstance(outcome.end, errors.ApiError)
    assert outcome.end.code == 429
    assert [one.hits for one in rules.list_active() if isinstance(one, ApiFault)] == [1, 1, 0]


def test_a_conflict_is_about_writes_only() -> None:
    rules = ActiveFaults(FakeClock())
    rules.add(fault(409))
    assert rules.find_outcome(WATCH) is None
    assert rules.find_outcome(FACTS) is not None


def test_a_fault_that_is_used_up_is_gone_and_the_log_has_the_clocks_time() -> None:
    clock = FakeClock()
    rules = ActiveFaults(clock)
    rules.add(fault(500, times=2))
    for _ in range(3):
        clock.step(60)
        rules.find_outcome(FACTS)
    assert rules.list_active() == []
    minutes = [hit.at.minute for hit in rules.list_hits()]
    assert minutes == [1, 2]
    assert str(rules.list_hits()[0]) == (
        "2026-01-01T00:01:00+00:00 any verb any resource: 500: "
        "update configmaps default/a by me (tool/1)"
    )


def test_each_client_expires_once_unless_it_lists() -> None:
    rules = ActiveFaults(FakeClock())
    rules.add(ExpiryFault(Target(resource="configmaps"), 9))
    other, lister = replace(WATCH, agent="other"), replace(WATCH, user="lister")
    rules.find_outcome(replace(lister, verb="list", version=""))
    asked = [WATCH, WATCH, other, lister, replace(WATCH, agent="new", version="10")]
    assert [rules.find_expiry(facts) for facts in asked] == [10, None, 10, None, None]
    assert rules.find_expiry(replace(WATCH, agent="third", version="0")) is None
    assert rules.find_expiry(replace(WATCH, agent="third", version="9")) is None


def test_a_webhook_that_times_out_is_answered_at_once_while_the_time_stands() -> None:
    cases: tuple[tuple[bool, CallBreak, str], ...] = (
        (True, "timeout", "timed-out"),
        (False, "timeout", "timeout"),
        (True, "refused", "refused"),
    )
    for frozen, error, answer in cases:
        clock = PlaneClock(0.0 if frozen else None)
        rules = ActiveFaults(clock)
        rules.add(WebhookFault("hook", error, times=None, after=0))
        assert rules.find_break(["hook"]) == answer
