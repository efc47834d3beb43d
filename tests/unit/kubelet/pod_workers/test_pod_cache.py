"""The pod cache: callers can wait for a newer view."""

from __future__ import annotations

import threading

import pytest

from kcm import errors
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.pod_workers.pod_cache import PodCache


def test_what_was_never_seen_is_empty_once_all_were_looked_at() -> None:
    cache = PodCache()
    with pytest.raises(errors.ContainerRuntimeError):
        cache.get_newer_than("u", 1.0, timeout=0.01)
    cache.update_time(2.0)
    assert cache.get_newer_than("u", 1.0) == PodView("u")


def test_a_waiter_gets_what_was_seen_after_its_moment() -> None:
    cache = PodCache()
    cache.set("u", PodView("u", "old"), None, 1.0)
    views: list[PodView] = []
    thread = threading.Thread(target=lambda: views.append(cache.get_newer_than("u", 1.0)))
    thread.start()
    cache.set("u", PodView("u", "new"), None, 1.5)
    thread.join(5)
    assert [view.name for view in views] == ["new"]


def test_a_look_that_failed_is_told() -> None:
    cache = PodCache()
    cache.set("u", PodView("u"), errors.ContainerRuntimeError("broken"), 1.0)
    with pytest.raises(errors.ContainerRuntimeError, match="broken"):
        cache.get_newer_than("u", 0.0)


def test_nobody_waits_when_the_kubelet_ends() -> None:
    cache = PodCache()
    cache.stop()
    with pytest.raises(errors.ContainerRuntimeError, match="stopping"):
        cache.get_newer_than("u", 1.0)
