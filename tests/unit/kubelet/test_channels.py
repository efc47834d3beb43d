"""Channels: items keep their order, and channels take turns at random."""

from __future__ import annotations

import random

from kcm.kubelet.channels import Channels
from kcm.testing.clock import FakeClock


def test_each_channel_is_in_order_and_none_starves() -> None:
    channels = Channels(FakeClock(), random.Random(1))
    busy, quiet = channels.channel("busy"), channels.channel("quiet")
    for n in range(200):
        busy.offer(n)
    quiet.offer("at last")
    taken = [channels.select(0) for _ in range(30)]
    assert ("quiet", "at last") in taken
    assert [item for name, item in filter(None, taken) if name == "busy"] == list(range(29))


def test_a_full_channel_takes_no_more() -> None:
    channels = Channels(FakeClock())
    ticks = channels.channel("ticks", 1)
    assert ticks.offer(1)
    assert not ticks.offer(2)
    assert channels.select(0) == ("ticks", 1)
    assert channels.select(0) is None


def test_a_closed_one_gives_nothing_more() -> None:
    channels = Channels(FakeClock())
    channels.channel("busy").offer(1)
    channels.close()
    assert channels.select(60) is None
