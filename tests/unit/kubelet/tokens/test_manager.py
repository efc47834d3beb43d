"""After TestTokenCachingAndExpiration, TestRequiresRefresh and TestCleanup of
pkg/kubelet/token/token_manager_test.go.
"""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.kubelet.tokens.manager import IssuedToken, TokenManager
from kcm.testing.builders import pod
from kcm.testing.clock import FakeClock

HOUR = 3600


class Issuing:
    """A source of numbered tokens, or of the error that is set."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.asked: list[tuple[str, str, int]] = []
        self.error: Exception | None = None

    def request(self, pod: Pod, audience: str, seconds: int) -> IssuedToken:
        self.asked.append((pod.name, audience, seconds))
        if self.error is not None:
            raise self.error
        expires = self.clock.now() + timedelta(seconds=seconds)
        return IssuedToken(f"token-{len(self.asked)}", expires, seconds)


def setup() -> tuple[TokenManager, Issuing, FakeClock]:
    clock = FakeClock()
    source = Issuing(clock)
    return TokenManager(source, clock, random.Random(1)), source, clock


def test_a_token_is_kept_until_four_fifths_of_its_time_are_over() -> None:
    manager, _, clock = setup()
    web = pod("web")
    assert manager.token(web, "", HOUR) == "token-1"
    clock.step(0.8 * HOUR - 11)
    assert manager.token(web, "", HOUR) == "token-1"
    clock.step(12)
    assert manager.token(web, "", HOUR) == "token-2"


def test_a_long_token_is_renewed_after_a_day() -> None:
    manager, _, clock = setup()
    manager.token(pod("web"), "", 365 * 24 * HOUR)
    clock.step(24 * HOUR - 11)
    assert manager.token(pod("web"), "", 365 * 24 * HOUR) == "token-1"
    clock.step(12)
    assert manager.token(pod("web"), "", 365 * 24 * HOUR) == "token-2"


def test_pods_audiences_and_times_have_tokens_of_their_own() -> None:
    manager, source, _ = setup()
    for name, audience, seconds in (
        ("web", "", HOUR),
        ("db", "", HOUR),
        ("web", "vault", HOUR),
        ("web", "", 600),
        ("web", "", HOUR),
    ):
        manager.token(pod(name), audience, seconds)
    assert len(source.asked) == 4


def test_a_pod_of_the_same_name_gets_another_token() -> None:
    manager, _, _ = setup()
    manager.token(pod("web"), "", HOUR)
    assert manager.token(pod("web").with_metadata(uid="new"), "", HOUR) == "token-2"


def test_a_valid_token_is_used_while_none_is_issued() -> None:
    manager, source, clock = setup()
    manager.token(pod("web"), "", HOUR)
    source.error = errors.StoreUnavailable("away")
    clock.step(0.9 * HOUR)
    assert manager.token(pod("web"), "", HOUR) == "token-1"
    clock.step(0.2 * HOUR)
    with pytest.raises(errors.ContainerConfigError, match="failed to fetch token: away"):
        manager.token(pod("web"), "", HOUR)


@pytest.mark.parametrize("error", [errors.StoreUnavailable("away"), errors.Forbidden("no")])
def test_without_any_token_the_reason_is_said(error: Exception) -> None:
    manager, source, _ = setup()
    source.error = error
    with pytest.raises(errors.ContainerConfigError, match=r"failed to fetch token: (away|no)"):
        manager.token(pod("web"), "", HOUR)


def test_expired_tokens_are_forgotten() -> None:
    manager, _, clock = setup()
    manager.token(pod("gone"), "", 600)
    clock.step(601)
    manager.token(pod("web"), "", HOUR)
    assert len(manager._tokens) == 1


def test_a_token_is_in_no_repr() -> None:
    assert "secret" not in repr(IssuedToken("secret", FakeClock().now(), 1))
