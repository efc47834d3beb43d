from __future__ import annotations

from kcm.simulated.jitter import spread


def test_jitter_is_spread_and_drawn_again_the_same() -> None:
    found = [spread("uid", n) for n in range(1000)]
    assert found == [spread("uid", n) for n in range(1000)]
    assert 0 <= min(found) < 0.05
    assert 0.95 < max(found) < 1
