"""Tests that guards stop writes, with the store's script and in memory."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from kcm.api.core_v1 import Pod, ResourceQuota, ResourceQuotaSpec, Taint
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.reconcile.carrying import set_limits
from kcm.reconcile.executor import PlanExecutor
from kcm.reconcile.plan import Bind, Create, Delete, Limit, Plan, Write
from kcm.store import Store
from kcm.store.indexes import noexecute_entry
from kcm.store.writes.guards import (
    Absent,
    EntryUnchanged,
    Exists,
    Guard,
    Indexed,
    NothingCharged,
    QuotasUnchanged,
    TokenAvailable,
    Unindexed,
)
from kcm.testing.builders import config_map
from tests.new_objects import make_namespaces, node, pod, strip_store_fields

TAINT = Taint(key="gone", value="", effect="NoExecute")
_NUMBERS = count()


class Side:
    """Writes with one of the stores, and reads back."""

    def __init__(self, store: Store) -> None:
        self.versions: dict[str, int] = {}  # by what happened last
        self._store = store
        make_namespaces(store, "limited")

    def write(self, write: Write) -> KubeObject | None:
        """Returns the written object, or None if a guard stopped the write."""
        outcome = PlanExecutor(self._store).execute(Plan().then(write), None)
        return outcome.done[0][1] if outcome.done else None

    def version(self) -> int:
        return self._store.resource_version()

    def find(self, resource: str, key: str) -> KubeObject:
        return self._store.get(BUILT_IN.by_name(resource), key)


def prepare(side: Side) -> None:
    """Creates a tainted node with a pod bound to it, a namespace with a quota, and a pod in
    deletion.
    """
    side.write(Create(node("n1", taints=[TAINT])))
    side.versions["node"] = side.version()
    side.write(Create(pod("a", node_name="")))
    old = side.find("pods", "default/a")
    assert isinstance(old, Pod)
    guard = EntryUnchanged("node:n1", side.versions["node"], "mine")
    side.write(Bind(old.with_spec(old.spec.replace(node_name="n1")), old, (guard,)))
    side.versions["bound"] = side.version()
    spec = ResourceQuotaSpec(hard={"configmaps": Quantity(9)})
    side.write(
        Create(ResourceQuota(metadata=ObjectMeta(name="few", namespace="limited"), spec=spec))
    )
    side.versions["quota"] = side.version()
    side.write(Create(strip_store_fields(config_map("c", namespace="limited"))))
    side.versions["charged"] = side.version()
    side.write(Create(pod("held").with_metadata(finalizers=["a/b"])))
    side.write(Delete(side.find("pods", "default/held")))


def passes(side: Side, guard: Guard) -> bool:
    """Reports whether a write under the guard succeeds."""
    probe = strip_store_fields(config_map(f"probe-{next(_NUMBERS)}"))
    return side.write(Create(probe, (guard,))) is not None


def quota_version(side: Side) -> str:
    return side.find("resourcequotas", "limited/few").metadata.resource_version or ""


GUARDS: dict[str, tuple[Callable[[Side], Guard], bool]] = {
    "it exists": (lambda side: Exists("nodes", "n1"), True),
    "this one exists": (lambda side: Exists("nodes", "n1", side.find("nodes", "n1").uid), True),
    "another exists": (lambda side: Exists("nodes", "n1", "other"), False),
    "none exists": (lambda side: Exists("nodes", "n2"), False),
    "it is being deleted": (lambda side: Exists("pods", "default/held"), False),
    "none is there": (lambda side: Absent("nodes", "n2"), True),
    "one is there": (lambda side: Absent("nodes", "n1"), False),
    "another is there": (lambda side: Absent("nodes", "n1", "other"), True),
    "nobody carries the entry": (lambda side: Unindexed("owner:u"), True),
    "somebody carries the entry": (lambda side: Unindexed("node:n1"), False),
    "it carries the entry": (
        lambda side: Indexed("nodes", "n1", noexecute_entry([TAINT])),
        True,
    ),
    "it does not carry the entry": (lambda side: Indexed("nodes", "n1", "noexecute:x="), False),
    "an empty bucket": (lambda side: TokenAvailable("empty"), False),
    "the quotas as they are": (
        lambda side: QuotasUnchanged("limited", (("few", quota_version(side)),)),
        True,
    ),
    "a quota in another version": (
        lambda side: QuotasUnchanged("limited", (("few", "1"),)),
        False,
    ),
    "a quota more than was seen": (lambda side: QuotasUnchanged("limited", ()), False),
    "nothing was charged since": (
        lambda side: NothingCharged("limited", (("configmaps", side.versions["charged"]),)),
        True,
    ),
    "something was charged since": (
        lambda side: NothingCharged("limited", (("configmaps", side.versions["quota"]),)),
        False,
    ),
    "a kind that was never charged": (lambda side: NothingCharged("limited", (("pods", 0),)), True),
    "no pod came since": (
        lambda side: EntryUnchanged("node:n1", side.versions["bound"], "x"),
        True,
    ),
    "a pod came since": (lambda side: EntryUnchanged("node:n1", side.versions["node"], "x"), False),
    "a pod of the same pass came since": (
        lambda side: EntryUnchanged("node:n1", side.versions["node"], "mine"),
        True,
    ),
}


@pytest.mark.parametrize("name", GUARDS)
def test_a_guard_stops_a_write_unless_it_holds(name: str, store: Store) -> None:
    guard, expected = GUARDS[name]
    side = Side(store)
    prepare(side)
    assert passes(side, guard(side)) == expected


def test_a_bucket_gives_its_tokens_and_no_more(store: Store) -> None:
    set_limits(store.io, {"full": Limit(1.0, 2.0)}, None)
    side = Side(store)
    assert [passes(side, TokenAvailable("full")) for _ in range(3)] == [True, True, False]
