from __future__ import annotations

import pytest

from kcm import errors
from kcm.manager.context.context import LoopMode, build_context, require_store
from kcm.options.manager import ManagerOptions
from kcm.settings import Settings
from kcm.testing.clock import FakeClock


def test_a_context_connects_to_nothing_until_it_starts() -> None:
    context = build_context(Settings(redis_url="redis://192.0.2.1:1"), ManagerOptions())
    assert [controller.name for controller in context.controllers] == ["widget-controller"]
    assert context.loop_mode is LoopMode.EXTERNAL_LOOPS
    assert not context.informers_started.is_set()
    context.shutdown()


def test_the_store_is_waited_for_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    context = build_context(Settings(redis_url="redis://192.0.2.1:1"), ManagerOptions(), clock)

    def away() -> None:
        raise errors.StoreUnavailable("refused")

    monkeypatch.setattr(context.io, "attach", away)
    with pytest.raises(errors.StoreUnavailable, match="did not respond within 10 s: refused"):
        require_store(context)
    assert clock.monotonic() == pytest.approx(10, abs=0.3)


def test_a_store_that_comes_in_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    context = build_context(Settings(redis_url="redis://192.0.2.1:1"), ManagerOptions(), clock)

    def attach() -> None:
        if clock.monotonic() < 5:
            raise errors.StoreUnavailable

    monkeypatch.setattr(context.io, "attach", attach)
    require_store(context)
    assert clock.monotonic() == pytest.approx(5, abs=0.3)


def test_one_identity_has_one_client() -> None:
    clients = build_context(Settings(redis_url="redis://192.0.2.1:1"), ManagerOptions()).clients
    assert clients.client("a") is clients.client("a")
    assert clients.client("a") is not clients.client("b")
