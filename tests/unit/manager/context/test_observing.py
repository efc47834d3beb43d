from __future__ import annotations

from kcm.manager.context.observing import CountingObserver


def test_what_informers_do_is_counted() -> None:
    observer = CountingObserver()
    observer.on_list("pods", 10, 0.5)
    observer.on_list("pods", 10, 0.25)
    observer.on_watch("pods", 3)
    observer.on_failure("", "read", OSError())
    observer.on_handler_crash("pods", "h", OSError())
    observer.on_handler_overflow("pods", "h")
    assert observer.snapshot("lists") == {("pods",): 2}
    assert observer.snapshot("list_seconds") == {("pods",): 0.75}
    assert observer.snapshot("watched") == {("pods",): 3}
    assert observer.snapshot("failures") == {("(all)", "read"): 1}
    assert observer.snapshot("panics") == {("pods/h",): 1}
    assert observer.snapshot("overflows") == {("pods", "h"): 1}
    assert observer.snapshot("nothing") == {}
