from __future__ import annotations

from kcm.api.scheme import Scheme
from kcm.apiextensions.kinds import resources_of
from kcm.apiextensions.registration import register
from kcm.manager.context.discovery import Discovery
from kcm.reconcile.contract import Controller
from tests.unit.apiextensions.samples import accept_names, definition


def test_a_kind_that_appears_is_found_by_the_next_look() -> None:
    crontabs, scheme = accept_names(definition()), Scheme()

    class Reader(Controller):
        reads = (resources_of(crontabs)[0].model,)

    discovery = Discovery(scheme)
    assert discovery.list_missing(Reader()) == ["crontabs.example.com"]
    register(scheme, crontabs)
    assert discovery.list_missing(Reader()) == ["crontabs.example.com"]
    assert discovery.turn(0.0).upkeep_in == 30.0
    assert discovery.list_missing(Reader()) == []
