from __future__ import annotations

from typing import get_args

import pytest

from kcm.api.core_v1 import Pod
from kcm.redisio.scripts import load
from kcm.store.writes.guards import (
    DEFINITIONS,
    Absent,
    EntryUnchanged,
    Exists,
    Guard,
    GuardKind,
    Indexed,
    NothingCharged,
    QuotasUnchanged,
    TokenAvailable,
    Unindexed,
    definition_guards,
    encode_guard,
)
from kcm.testing.builders import pod
from kcm.testing.views import NOW
from tests.unit.apiextensions.samples import SCHEME, definition, serve

ENCODED: list[tuple[Guard, list[str]]] = [
    (Exists("pods", "default/a", "u"), ["exists", "pods", "default/a", "u"]),
    (Absent("nodes", "n1"), ["absent", "nodes", "n1", ""]),
    (Unindexed("owner:u"), ["unindexed", "owner:u"]),
    (Indexed("nodes", "n1", "noexecute:a="), ["indexed", "nodes", "n1", "noexecute:a="]),
    (TokenAvailable("zone"), ["token", "zone"]),
    (QuotasUnchanged("ns", (("few", "7"),)), ["quotas", "ns", "few", "7"]),
    (
        NothingCharged("ns", (("pods", 7), ("secrets", 0))),
        ["counted", "ns", "pods", "7", "secrets", "0"],
    ),
    (EntryUnchanged("node:n1", 7, "pass"), ["unchanged", "node:n1", "7", "pass"]),
]


@pytest.mark.parametrize(("guard", "expected"), ENCODED)
def test_a_guard_is_encoded_as_its_kind_and_its_fields(guard: Guard, expected: list[str]) -> None:
    assert list(encode_guard(guard)) == expected
    assert str(guard) == " ".join(expected)


def test_every_class_of_guard_has_a_kind_that_the_script_knows() -> None:
    assert {type(guard) for guard, _ in ENCODED} == set(get_args(Guard))
    assert {terms[0] for _, terms in ENCODED} == set(GuardKind)
    script = load("store_write").text
    assert all(f"\n  {kind} = function(g)" in script for kind in GuardKind)


def test_objects_of_a_custom_kind_are_created_under_the_guard_that_its_definition_stays() -> None:
    wanted = definition()
    with serve(wanted):
        guards = definition_guards(SCHEME.by_name(wanted.name))
    assert guards == (Exists(DEFINITIONS, wanted.name),)
    assert definition_guards(Pod.resource) == ()


def test_guards_about_an_object_hold_for_its_uid() -> None:
    here, gone = pod("a").with_metadata(uid="u"), None
    assert Exists("pods", "default/a", "u").holds_for(here)
    assert Exists("pods", "default/a").holds_for(here)
    assert not Exists("pods", "default/a", "other").holds_for(here)
    assert not Exists("pods", "default/a").holds_for(gone)
    assert not Exists("pods", "default/a").holds_for(here.with_metadata(deletion_timestamp=NOW))
    assert Absent("pods", "default/a").holds_for(gone)
    assert Absent("pods", "default/a", "other").holds_for(here)
    assert not Absent("pods", "default/a", "u").holds_for(here)
    assert not Absent("pods", "default/a").holds_for(here)
