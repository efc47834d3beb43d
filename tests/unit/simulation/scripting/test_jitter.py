from __future__ import annotations

from kcm.simulation.scripting.jitter import spread


def test_jitter_is_spread_and_drawn_again_the_same() -> None:
    jitters = [spread("uid", n) for n in range(1000)]
    assert jitters == [spread("uid", n) for n in range(1000)]
    assert 0 <= min(jitters) < 0.05
    assert 0.95 < max(jitters) < 1
