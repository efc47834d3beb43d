from __future__ import annotations

from kcm.component.observing import CountingObserver


def test_what_informers_do_is_counted() -> None:
    observer = CountingObserver()
    observer.listed("pods", 10, 0.5)
    observer.listed("pods", 10, 0.25)
    observer.watched("pods", 3)
    observer.failed("", "read", OSError())
    observer.handler_crashed("pods", "h", OSError())
    observer.handler_overflowed("pods", "h")
    assert observer.snapshot("lists") == {("pods",): 2}
    assert observer.snapshot("list_seconds") == {("pods",): 0.75}
    assert observer.snapshot("watched") == {("pods",): 3}
    assert observer.snapshot("failures") == {("(all)", "read"): 1}
    assert observer.snapshot("panics") == {("pods/h",): 1}
    assert observer.snapshot("overflows") == {("pods", "h"): 1}
    assert observer.snapshot("nothing") == {}
