from __future__ import annotations

from kcm.api import scheme
from kcm.api.scheme import Resource
from kcm.component.discovery import Discovery
from kcm.reconcile.contract import Controller
from kcm.testing.clock import FakeClock


def test_a_kind_that_appears_is_found_by_the_next_look(
    samples: tuple[type[Controller], ...],
) -> None:
    served: list[Resource] = []
    discovery = Discovery(lambda: served, FakeClock())
    widget = samples[0]()
    assert discovery.list_missing(widget) == ["pods"]
    served.extend(scheme.resources())
    assert discovery.list_missing(widget) == ["pods"]
    discovery.refresh()
    assert discovery.list_missing(widget) == []
