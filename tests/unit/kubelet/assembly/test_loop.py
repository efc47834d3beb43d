"""Work of the sync loop that runs in other threads."""

from __future__ import annotations

import threading

from kcm import errors
from kcm.kubelet.assembly.loop import BackgroundWork


def fail() -> None:
    raise errors.StoreUnavailable("away")


def test_work_that_fails_does_not_stop_other_work() -> None:
    background, done = BackgroundWork(), threading.Event()
    background.submit(fail)
    background.submit(done.set)
    assert done.wait(5)
    background.stop()


def test_nothing_begins_once_the_work_was_stopped() -> None:
    background, done = BackgroundWork(), threading.Event()
    background.stop()
    background.submit(done.set)
    assert not done.is_set()
