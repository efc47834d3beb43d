"""Several sources in one stream, which are ready once each has sent all of its pods."""

from __future__ import annotations

from kcm.kubelet.channels import Channels
from kcm.kubelet.config.podconfig import PodConfig, SourcesReady
from kcm.kubelet.types import API, FILE, Operation, PodUpdate
from kcm.testing.clock import FakeClock
from tests.unit.kubelet.views import pod


def test_what_changed_goes_into_the_channel_and_all_sources_have_to_speak() -> None:
    clock = FakeClock()
    channels = Channels(clock)
    config = PodConfig(channels.channel("config"), clock, {API, FILE})
    ready = SourcesReady(config)
    config.update(PodUpdate(Operation.SET, API, [pod()]))
    taken = channels.select(0)
    assert taken is not None
    assert taken[1].op is Operation.ADD
    ready.add_source(API)
    assert not ready.all_ready()
    config.update(PodUpdate(Operation.SET, FILE, []))
    assert not ready.all_ready()  # sent, but not yet seen by the loop
    ready.add_source(FILE)
    assert ready.all_ready()
