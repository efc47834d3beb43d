from __future__ import annotations

from kcm.api import scheme
from kcm.api.scheme import Resource
from kcm.component.discovery import Discovery
from kcm.reconcile.contract import Controller


def test_a_kind_that_appears_is_found_by_the_next_look(
    samples: tuple[type[Controller], ...],
) -> None:
    served: list[Resource] = []
    discovery = Discovery(lambda: served)
    widget = samples[0]()
    assert discovery.list_missing(widget) == ["pods"]
    served.extend(scheme.resources())
    assert discovery.list_missing(widget) == ["pods"]
    assert discovery.turn(0.0).upkeep_in == 30.0
    assert discovery.list_missing(widget) == []
