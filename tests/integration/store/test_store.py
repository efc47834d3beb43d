"""Tests the store's verbs against a real server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Pod
from kcm.api.scheme import BUILT_IN
from kcm.apiextensions.field_selectors import FieldSelector
from kcm.apimachinery.labels import Selector
from kcm.redisio import Fence, RedisIO
from kcm.store import Conditions, DeleteOptions, Pattern, Store, Subresource
from kcm.store.writes.guards import Absent, Exists
from kcm.testing.clock import FakeClock
from tests.new_objects import make_namespaces, node, pod, replica_set

PODS = Pod.resource
REPLICA_SETS = ReplicaSet.resource


def names(store: Store, **selection: Any) -> list[str]:
    return [obj.name for obj in store.list(PODS, **selection).items]


class TestCreate:
    def test_fills_in_what_the_server_owns(self, store: Store, clock: FakeClock) -> None:
        stored = store.create(replica_set("web"))
        assert stored.uid
        assert stored.metadata.resource_version == "2"  # the namespace was first
        assert stored.metadata.generation == 1
        assert stored.metadata.creation_timestamp == clock.now()
        assert store.get(REPLICA_SETS, "default/web") == stored

    def test_refuses_a_name_that_is_taken(self, store: Store) -> None:
        store.create(pod("web"))
        with pytest.raises(errors.AlreadyExists, match='pods "web" already exists'):
            store.create(pod("web"))

    def test_of_the_same_uid_is_the_same_create(self, store: Store) -> None:
        first = store.create(pod("web", uid="u-1"))
        assert store.create(pod("web", uid="u-1")).metadata.resource_version == (
            first.metadata.resource_version
        )

    def test_drops_the_status_that_a_creator_may_not_set(self, store: Store) -> None:
        stored = store.create(pod("web", phase="Running"))
        assert stored.status.phase == "Pending"

    def test_generates_a_name_with_the_prefix(self, store: Store) -> None:
        template = pod("x").with_metadata(name=None, generate_name="web-")
        names = [store.create(template).name for _ in range(20)]
        assert len(set(names)) == 20
        assert all(name.startswith("web-") and len(name) == 9 for name in names)

    def test_copies_of_one_object_differ_by_name_and_uid_only(self, store: Store) -> None:
        template = pod("x").with_metadata(name=None, generate_name="web-")
        first = store.build_create(template)
        second = store.build_create(template, like=Pattern(first))
        assert (first.obj.name, first.obj.uid) != (second.obj.name, second.obj.uid)
        same = {"name": "n", "uid": "u"}
        assert second.obj.with_metadata(**same) == first.obj.with_metadata(**same)
        assert [result.status for result in store.write([first, second])] == ["ok", "ok"]
        assert store.get(PODS, second.obj.key).uid == second.obj.uid

    def test_an_object_with_a_name_is_no_copy(self, store: Store) -> None:
        named = pod("web")
        assert store.build_create(named, like=Pattern(store.build_create(named))).obj.name == "web"

    def test_texts_that_look_like_metadata_are_kept(self, store: Store) -> None:
        annotations = {"a": '"metadata":{"resourceVersion":"7"}'}
        created_pod = store.create(pod("web").with_metadata(annotations=annotations))
        obj = store.get(PODS, created_pod.key)
        assert obj == created_pod
        assert obj.annotations == annotations

    def test_refuses_an_object_over_the_limit(self, store: Store) -> None:
        big = pod("web").with_metadata(annotations={"a": "x"}, labels=None)
        big = big.with_spec(big.spec.replace(scheduler_name="s" * 1_600_000))
        with pytest.raises((errors.RequestTooLarge, errors.Invalid)):
            store.create(big)
        assert store.count(PODS) == 0

    def test_refuses_an_invalid_object_and_writes_nothing(self, store: Store) -> None:
        with pytest.raises(errors.Invalid, match=r"spec\.replicas: Invalid value: -1"):
            store.create(replica_set("web", replicas=-1))
        assert store.resource_version() == 0


class TestUpdate:
    def test_moves_the_generation_only_with_the_spec(self, store: Store) -> None:
        first = store.create(replica_set("web", replicas=1))
        labelled = store.update(first.with_metadata(labels={"a": "b"}))
        assert labelled.metadata.generation == 1
        scaled = store.update(labelled.with_spec(labelled.spec.replace(replicas=2)))
        assert scaled.metadata.generation == 2

    def test_that_changes_nothing_writes_nothing(self, store: Store) -> None:
        first = store.create(replica_set("web"))
        assert store.update(first) == first
        assert str(store.resource_version()) == first.metadata.resource_version

    def test_of_a_stale_version_conflicts(self, store: Store) -> None:
        first = store.create(replica_set("web", replicas=1))
        store.update(first.with_spec(first.spec.replace(replicas=2)))
        with pytest.raises(errors.Conflict, match="the object has been modified"):
            store.update(first.with_spec(first.spec.replace(replicas=3)))

    def test_leaves_the_status_alone(self, store: Store) -> None:
        first = store.create(replica_set("web"))
        changed = first.with_status(first.status.replace(replicas=7)).with_metadata(
            labels={"a": "b"}
        )
        assert store.update(changed).status.replicas == 0

    def test_of_a_status_leaves_all_else_alone(self, store: Store) -> None:
        first = store.create(replica_set("web", replicas=1))
        changed = first.with_status(first.status.replace(replicas=7))
        changed = changed.with_spec(changed.spec.replace(replicas=9))
        stored = store.update_status(changed)
        assert (stored.status.replicas, stored.spec.replicas) == (7, 1)
        assert stored.metadata.generation == 1

    def test_of_what_is_not_there_is_not_found(self, store: Store) -> None:
        with pytest.raises(errors.NotFound, match=r'replicasets\.apps "web" not found'):
            store.update(replica_set("web"))

    def test_unknown_fields_are_not_stored(self, store: Store) -> None:
        raw = codec.to_dict(replica_set("web")) | {"extra": 1}
        store.create(codec.decode(raw, BUILT_IN))
        store.patch(REPLICA_SETS, "default/web", {"metadata": {"labels": {"a": "b"}}, "more": 1})
        stored = codec.to_dict(store.get(REPLICA_SETS, "default/web"))
        assert stored["metadata"]["labels"]["a"] == "b"
        assert not {"extra", "more"} & stored.keys()

    def test_merges_and_deletes(self, store: Store) -> None:
        store.create(replica_set("web", labels={"a": "1", "b": "2"}))
        stored = store.patch(
            REPLICA_SETS, "default/web", {"metadata": {"labels": {"a": None, "c": "3"}}}
        )
        assert stored.metadata.labels == {"b": "2", "c": "3"}

    def test_of_a_version_that_has_passed_conflicts(self, store: Store) -> None:
        store.create(replica_set("web"))
        store.patch(REPLICA_SETS, "default/web", {"spec": {"replicas": 7}})
        with pytest.raises(errors.Conflict):
            store.patch(
                REPLICA_SETS,
                "default/web",
                {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 4}},
            )

    def test_of_the_status_touches_the_status_only(self, store: Store) -> None:
        store.create(replica_set("web", replicas=1))
        stored = store.patch(
            REPLICA_SETS,
            "default/web",
            {"status": {"replicas": 5}, "spec": {"replicas": 9}},
            subresource=Subresource.STATUS,
        )
        assert isinstance(stored, ReplicaSet)
        assert (stored.status.replicas, stored.spec.replicas) == (5, 1)


class TestModifyWhatIsKnown:
    """Tests `modify` with a state that the caller already has."""

    @staticmethod
    def label(old: Pod) -> Pod:
        return old.with_metadata(labels={**old.labels, "new": "x"})

    def test_a_state_that_is_the_stored_one_need_not_be_read(self, store: Store) -> None:
        known, seen = store.create(pod("web")), list[Pod]()

        def change(old: Pod) -> Pod:
            seen.append(old)
            return self.label(old)

        stored = store.modify(PODS, known.key, change, cached=known)
        assert seen[0] is known
        assert len(seen) == 1
        assert store.get(PODS, known.key) == stored

    def test_a_state_that_has_passed_loses_nobodys_change(self, store: Store) -> None:
        known = store.create(pod("web"))
        store.modify(PODS, known.key, lambda old: old.with_metadata(labels={"other": "y"}))
        stored = store.modify(PODS, known.key, self.label, cached=known)
        assert dict(stored.labels) == {"other": "y", "new": "x"}

    def test_a_refusal_of_a_state_that_has_passed_decides_nothing(self, store: Store) -> None:
        known = store.create(pod("web"))
        now = store.modify(PODS, known.key, lambda old: old.with_metadata(labels={"other": "y"}))

        def change(old: Pod) -> Pod:
            if old.metadata.resource_version != now.metadata.resource_version:
                raise errors.Conflict.of(PODS.name, old.name)
            return self.label(old)

        assert store.modify(PODS, known.key, change, cached=known).labels["new"] == "x"

    def test_a_change_of_nothing_is_made_to_what_is_stored(self, store: Store) -> None:
        known = store.create(pod("web"))
        now = store.modify(PODS, known.key, self.label)
        assert store.modify(PODS, known.key, lambda old: old, cached=known) == now

    def test_an_object_that_is_gone_is_not_found(self, store: Store) -> None:
        known = store.create(pod("web"))
        store.delete(PODS, known.key)
        with pytest.raises(errors.NotFound):
            store.modify(PODS, known.key, self.label, cached=known)
        again = store.create(pod("web"))
        assert store.modify(PODS, known.key, self.label, cached=known).uid == again.uid


class TestDeleteWhatIsKnown:
    """Tests `delete` with a state that the caller already has."""

    def test_a_state_that_is_the_stored_one_need_not_be_read(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        known = store.create(pod("web"))
        monkeypatch.setattr(store, "get", None)
        gone = store.delete(PODS, known.key, DeleteOptions(grace_period_seconds=0), cached=known)
        assert gone.uid == known.uid
        assert names(store) == []

    def test_a_state_that_has_passed_is_read_again(self, store: Store) -> None:
        known = store.create(pod("web"))
        store.modify(PODS, known.key, lambda old: old.with_metadata(finalizers=["x.example/y"]))
        left = store.delete(PODS, known.key, DeleteOptions(grace_period_seconds=0), cached=known)
        assert left.deleting
        assert names(store) == ["web"]

    def test_another_object_of_the_name_is_spared_by_a_precondition(self, store: Store) -> None:
        known = store.create(pod("web"))
        store.delete(PODS, known.key, DeleteOptions(grace_period_seconds=0))
        store.create(pod("web"))
        with pytest.raises(errors.Conflict):
            store.delete(PODS, known.key, DeleteOptions(uid=known.uid or ""), cached=known)
        assert names(store) == ["web"]


class TestDelete:
    def test_of_a_pod_without_a_node_is_immediate(self, store: Store) -> None:
        store.create(pod("web"))
        store.delete(PODS, "default/web")
        assert names(store) == []

    def test_of_a_pod_on_a_node_waits_for_its_grace(self, store: Store) -> None:
        store.create(pod("web", node="n1"))
        marked = store.delete(PODS, "default/web")
        assert marked.metadata.deletion_grace_period_seconds == 30
        assert names(store) == ["web"]
        store.delete(PODS, "default/web", DeleteOptions(grace_period_seconds=0))
        assert names(store) == []

    def test_a_grace_of_more_seconds_than_there_are_is_the_end_of_time(self, store: Store) -> None:
        store.create(pod("web", node="n1"))
        options = DeleteOptions(grace_period_seconds=2**62)
        marked = store.delete(PODS, "default/web", options)
        assert marked.metadata.deletion_timestamp == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
        store.delete(PODS, "default/web", DeleteOptions(grace_period_seconds=60))

    def test_waits_for_finalizers_and_ends_with_the_last(self, store: Store) -> None:
        held = store.create(replica_set("web").with_metadata(finalizers=["example.com/hold"]))
        marked = store.delete(REPLICA_SETS, "default/web")
        assert marked.metadata.deletion_timestamp
        assert marked.metadata.generation == (held.metadata.generation or 0) + 1
        freed = marked.with_metadata(finalizers=None)
        assert isinstance(freed, ReplicaSet)
        store.update(freed)
        with pytest.raises(errors.NotFound):
            store.get(REPLICA_SETS, "default/web")

    @pytest.mark.parametrize(
        ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
    )
    def test_with_a_policy_leaves_the_rest_to_the_collector(
        self, store: Store, policy: Literal["Foreground", "Orphan"], finalizer: str
    ) -> None:
        store.create(replica_set("web"))
        options = DeleteOptions(propagation_policy=policy)
        marked = store.delete(REPLICA_SETS, "default/web", options)
        assert marked.metadata.finalizers == [finalizer]
        assert marked.metadata.deletion_timestamp

    def test_of_another_uid_conflicts(self, store: Store) -> None:
        store.create(pod("web", uid="u-1"))
        with pytest.raises(errors.Conflict, match=r"precondition \(u-2\) does not match"):
            store.delete(PODS, "default/web", DeleteOptions(uid="u-2"))


class TestList:
    def test_pages_through_everything_once(self, store: Store) -> None:
        make_namespaces(store, "a", "b")
        for number in range(25):
            store.create(pod(f"web-{number:02d}", namespace="a" if number % 2 else "b"))
        token, seen = "", []
        while True:
            page = store.list(PODS, limit=7, continue_=token)
            seen += [obj.key for obj in page.items]
            token = page.continue_
            if not token:
                break
        assert seen == sorted(seen)
        assert len(set(seen)) == 25

    def test_selects_by_namespace_labels_and_fields(self, store: Store) -> None:
        make_namespaces(store, "other")
        store.create(pod("a", labels={"app": "x"}))
        store.create(pod("b", labels={"app": "y"}, node="n1"))
        store.create(pod("c", namespace="other", labels={"app": "x"}))
        assert names(store, namespace="default") == ["a", "b"]
        assert names(store, label_selector=Selector.parse("app=x")) == ["a", "c"]
        assert names(store, field_selector=FieldSelector.parse("spec.nodeName=n1")) == ["b"]

    def test_of_a_namespace_does_not_show_one_with_the_same_beginning(self, store: Store) -> None:
        make_namespaces(store, "web", "web-2")
        store.create(pod("a", namespace="web"))
        store.create(pod("b", namespace="web-2"))
        assert names(store, namespace="web") == ["a"]

    def test_refuses_a_token_that_is_not_ours(self, store: Store) -> None:
        with pytest.raises(errors.BadRequest, match="continue key is not valid"):
            store.list(PODS, continue_="rubbish")


class TestIndexes:
    def test_follow_owners_and_nodes(self, store: Store) -> None:
        owner = store.create(replica_set("web"))
        store.create(pod("a", owner=owner, node="n1"))
        assert store.by_index(f"owner:{owner.uid}") == [("pods", "default/a")]
        assert store.by_index("node:n1", PODS) == [("pods", "default/a")]
        assert [obj.name for obj in store.list_indexed(PODS, "node:n1").objects] == ["a"]
        store.patch(PODS, "default/a", {"metadata": {"ownerReferences": None}})
        assert store.by_index(f"owner:{owner.uid}") == []
        store.delete(PODS, "default/a", DeleteOptions(grace_period_seconds=0))
        assert store.by_index("node:n1") == []


class TestConditions:
    def test_a_guard_that_fails_stops_the_write(self, store: Store) -> None:
        nodes = BUILT_IN.lookup("nodes")
        when = Conditions(guards=(Exists(nodes.name, "n1"),))
        with pytest.raises(errors.GuardFailed, match="exists nodes n1"):
            store.create(pod("web"), when)
        store.create(node("n1"))
        store.create(pod("web"), when)

    def test_a_guard_on_a_uid_sees_through_a_name_used_again(self, store: Store) -> None:
        owner = store.create(replica_set("web"))
        absent = Conditions(guards=(Absent(REPLICA_SETS.name, owner.key, owner.uid),))
        with pytest.raises(errors.GuardFailed):
            store.create(pod("a"), absent)
        store.delete(REPLICA_SETS, owner.key)
        store.create(replica_set("web"))
        store.create(pod("a"), absent)

    def test_an_object_being_deleted_does_not_count_as_existing(self, store: Store) -> None:
        store.create(replica_set("web").with_metadata(finalizers=["example.com/hold"]))
        store.delete(REPLICA_SETS, "default/web")
        with pytest.raises(errors.GuardFailed):
            store.create(pod("a"), Conditions(guards=(Exists(REPLICA_SETS.name, "default/web"),)))

    def test_nothing_is_written_under_a_lost_fence(self, store: Store, io: RedisIO) -> None:
        record = io.keys.queue("test", "running")
        io.execute("HSET", record, "default/web", "7")
        fenced = Conditions(fence=Fence(record, "default/web", "7"))
        store.create(pod("a"), fenced)
        io.execute("HSET", record, "default/web", "8")
        with pytest.raises(errors.Fenced):
            store.create(pod("b"), fenced)
        assert names(store) == ["a"]
