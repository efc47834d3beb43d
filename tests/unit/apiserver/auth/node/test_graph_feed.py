"""The graph follows the watch caches."""

from __future__ import annotations

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.node.graph import ACCOUNT, POD
from kcm.apiserver.auth.node.graph_feed import MOST_NOTED, GraphFeed
from kcm.store import WatchEntry
from kcm.store.watch import ChangeType
from kcm.testing.builders import pod
from tests.unit.apiserver.auth.caches import FakeHub

PODS = Pod.resource


def send(hub: FakeHub, version: int, *changes: tuple[ChangeType, KubeObject]) -> None:
    """Sends changes through the watch cache of pods."""
    entries = [
        WatchEntry(PODS, version, change, obj.key, codec.encode(obj)) for change, obj in changes
    ]
    hub.cache(PODS).apply(entries, version)


def bound(name: str, node: str | None, account: str = "robot") -> Pod:
    return pod(name, node=node, service_account_name=account)


def test_a_pod_counts_from_its_binding_until_it_is_gone() -> None:
    hub = FakeHub(bound("a", None))
    feed = GraphFeed(hub)
    account = (ACCOUNT, "default/robot")
    assert not feed.belongs("n1", account)
    send(hub, 2, ("MODIFIED", bound("a", "n1")))
    assert feed.belongs("n1", account)
    assert not feed.belongs("n2", account)
    send(hub, 3, ("DELETED", bound("a", "n1")))
    assert not feed.belongs("n1", account)


def test_what_two_pods_use_stays_until_both_are_gone() -> None:
    hub = FakeHub(bound("a", "n1"), bound("b", "n1"))
    feed = GraphFeed(hub)
    account = (ACCOUNT, "default/robot")
    assert feed.belongs("n1", account)
    send(hub, 2, ("DELETED", bound("a", "n1")))
    assert feed.belongs("n1", account)
    send(hub, 3, ("DELETED", bound("b", "n1")))
    assert not feed.belongs("n1", account)


def test_a_pod_of_the_same_name_on_another_node_replaces_the_first() -> None:
    hub = FakeHub(bound("a", "n1"))
    feed = GraphFeed(hub)
    assert feed.belongs("n1", (POD, "default/a"))
    send(hub, 2, ("DELETED", bound("a", "n1")), ("ADDED", bound("a", "n2", "other")))
    assert not feed.belongs("n1", (POD, "default/a"))
    assert not feed.belongs("n1", (ACCOUNT, "default/robot"))
    assert feed.belongs("n2", (ACCOUNT, "default/other"))


def test_many_changes_are_taken_in_without_a_question() -> None:
    hub = FakeHub()
    feed = GraphFeed(hub)
    assert not feed.belongs("n1", (POD, "default/p0"))
    many = [bound(f"p{number}", "n1") for number in range(MOST_NOTED + 1)]
    send(hub, 2, *(("ADDED", one) for one in many))
    assert feed._graph.belongs("n1", (POD, "default/p0"))


def test_more_changes_than_a_watch_keeps_are_found_by_a_new_list() -> None:
    hub = FakeHub(bound("gone", "n1"))
    feed = GraphFeed(hub)
    assert feed.belongs("n1", (POD, "default/gone"))
    many = [bound(f"p{number}", "n1") for number in range(1200)]
    gone = bound("gone", "n1")
    send(hub, 2, ("DELETED", gone), *(("ADDED", one) for one in many))
    assert feed.belongs("n1", (POD, "default/p1199"))
    assert not feed.belongs("n1", (POD, "default/gone"))


def test_a_kind_that_is_listed_again_is_compared_with_what_was_known() -> None:
    hub = FakeHub(bound("a", "n1"), bound("b", "n1"))
    feed = GraphFeed(hub)
    assert feed.belongs("n1", (POD, "default/a"))
    hub.fill(bound("b", "n1"), bound("c", "n1"))
    assert not feed.belongs("n1", (POD, "default/a"))
    assert feed.belongs("n1", (POD, "default/c"))


def test_a_damaged_pod_gives_its_node_nothing_and_costs_only_itself() -> None:
    hub = FakeHub(bound("a", "n1"), bound("b", "n1"))
    feed = GraphFeed(hub)
    assert feed.belongs("n1", (POD, "default/a"))
    hub.cache(PODS).apply([WatchEntry(PODS, 2, "MODIFIED", "default/a", b"{no json")], 2)
    assert not feed.belongs("n1", (POD, "default/a"))
    assert feed.belongs("n1", (POD, "default/b"))
