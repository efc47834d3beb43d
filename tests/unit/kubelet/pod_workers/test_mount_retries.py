from __future__ import annotations

from kcm.kubelet.pod_workers.syncer import MountRetries


def test_volumes_are_tried_again_soon_and_then_later_and_later() -> None:
    retries = MountRetries()
    assert [retries.delay("a") for _ in range(5)] == [0.5, 1, 2, 4, 8]
    assert retries.delay("b") == 0.5


def test_a_success_begins_anew() -> None:
    retries = MountRetries()
    retries.delay("a")
    retries.forget("a")
    retries.forget("never seen")
    assert retries.delay("a") == 0.5


def test_the_delay_does_not_grow_without_end() -> None:
    retries = MountRetries()
    assert max(retries.delay("a") for _ in range(2000)) == 3600
