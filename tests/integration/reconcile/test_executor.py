"""Tests the execution of plans against a real store."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import Kind, KubeObject, ObjectMeta
from kcm.informers.views import metadata_view
from kcm.reconcile.executor import PlanExecutor
from kcm.reconcile.plan import Create, Delete, Outcome, Patch, Plan, Update, UpdateStatus
from kcm.redisio import Fence, RedisIO
from kcm.store import DeleteOptions, Store
from kcm.store.writes.guards import Absent
from kcm.testing.builders import pod, replica_set
from tests.integration.reconcile.conftest import WatchedStore, exists, get_stored, put

PODS = Pod.resource
METADATA = metadata_view(PODS)


def new_pod(name: str | None = None, **metadata: Any) -> Pod:
    new = pod("x")
    meta = ObjectMeta(name=name, generate_name=None if name else "web-", namespace="default")
    return new.replace(metadata=meta.replace(**metadata))


def bad_pod() -> Pod:
    return new_pod("Not A Name")


def add_label(obj: Kind) -> Kind:
    return obj.with_metadata(labels={**obj.labels, "patched": "yes"})


def touch(others: Store, obj: Pod) -> KubeObject:
    """Changes the object as another client."""
    return others.patch(PODS, obj.key, {"metadata": {"annotations": {"touched": "yes"}}})


# --- batches


def test_a_slow_start_doubles_with_each_success(
    executor: PlanExecutor, store: WatchedStore
) -> None:
    outcome = executor.execute(Plan().then(*[Create(new_pod())] * 10, slow_start=True), None)
    assert store.calls == [1, 2, 4, 3]
    assert (len(outcome.done), outcome.failures, outcome.skipped) == (10, (), 0)
    assert store.count(PODS) == 10


def test_a_slow_start_ends_with_the_batch_that_fails(
    executor: PlanExecutor, store: WatchedStore
) -> None:
    writes = [Create(new_pod()), Create(bad_pod()), *[Create(new_pod())] * 7]
    outcome = executor.execute(Plan().then(*writes, slow_start=True), None)
    assert (len(outcome.done), len(outcome.failures), outcome.skipped) == (2, 1, 6)
    assert isinstance(outcome.error, errors.Invalid)


def test_writes_that_stand_together_are_one_call(
    executor: PlanExecutor, store: WatchedStore
) -> None:
    executor.execute(Plan().then(*[Create(new_pod())] * 100), None)
    assert store.calls == [100]


def test_one_failure_does_not_stop_its_neighbours_nor_what_follows(
    executor: PlanExecutor, store: WatchedStore
) -> None:
    plan = Plan().then(Create(bad_pod()), Create(new_pod("a"))).then(Create(new_pod("b")))
    outcome = executor.execute(plan, None)
    assert [obj.name for _, obj in outcome.done] == ["a", "b"]
    assert len(outcome.failures) == 1


def test_a_failure_in_an_essential_batch_ends_the_plan(
    executor: PlanExecutor, store: WatchedStore
) -> None:
    plan = Plan().then(Create(bad_pod()), essential=True).then(Create(new_pod()))
    plan.status_after = lambda outcome: pytest.fail("the status was planned for the other case")
    outcome = executor.execute(plan, None)
    assert (outcome.done, outcome.skipped) == ((), 1)
    assert store.count(PODS) == 0


def test_a_lost_fence_stops_everything(executor: PlanExecutor, store: WatchedStore) -> None:
    fence = Fence("kcm:queue:replicaset:running", "default/web", "7")
    with pytest.raises(errors.Fenced):
        executor.execute(Plan().then(Create(new_pod())), fence)
    assert store.count(PODS) == 0


# --- creations


def test_a_generated_name_that_is_taken_is_drawn_again(
    executor: PlanExecutor, store: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = itertools.chain(["web-1", "web-1", "web-1", "web-2"])
    monkeypatch.setattr("kcm.apimachinery.names.generate_name", lambda prefix, rng: next(names))
    outcome = executor.execute(Plan().then(Create(new_pod()), Create(new_pod())), None)
    assert [obj.name for _, obj in outcome.done] == ["web-1", "web-2"]


def test_a_chosen_name_that_is_taken_is_a_failure(executor: PlanExecutor, others: Store) -> None:
    put(others, pod("a"))
    outcome = executor.execute(Plan().then(Create(new_pod("a"))), None)
    assert isinstance(outcome.error, errors.AlreadyExists)


# --- patches


def test_a_patch_that_was_overtaken_is_applied_to_what_is_there_now(
    executor: PlanExecutor, store: WatchedStore, others: Store
) -> None:
    old = put(others, pod("a"))
    store.meanwhile = lambda: touch(others, old)
    outcome = executor.execute(Plan().then(Patch(old, add_label)), None)
    assert outcome.error is None
    now = get_stored(others, old)
    assert (now.labels["patched"], now.annotations["touched"]) == ("yes", "yes")


def test_overtaken_patches_are_read_and_written_again_together(
    executor: PlanExecutor, store: WatchedStore, others: Store
) -> None:
    olds = [put(others, pod(f"p{n}")) for n in range(20)]
    store.meanwhile = lambda: [touch(others, old) for old in olds[:10]]
    outcome = executor.execute(Plan().then(*(Patch(old, add_label) for old in olds)), None)
    assert (len(outcome.done), outcome.failures) == (20, ())
    assert (store.calls, store.reads) == ([20, 10], 1)


def test_a_patch_with_nothing_to_change_writes_nothing(
    executor: PlanExecutor, store: WatchedStore, others: Store
) -> None:
    old = put(others, pod("a"))
    outcome = executor.execute(Plan().then(Patch(old, lambda obj: obj)), None)
    assert (store.calls, [obj for _, obj in outcome.done]) == ([], [old])


def test_patching_metadata_only_objects_keeps_the_rest_of_them(
    executor: PlanExecutor, store: WatchedStore, others: Store
) -> None:
    olds = [put(others, pod(f"p{n}", active_deadline_seconds=7)) for n in range(3)]
    plan = Plan().then(*(Patch(METADATA.convert(old), add_label) for old in olds))
    assert executor.execute(plan, None).error is None
    assert (store.calls, store.reads) == ([3], 1)
    for old in olds:
        now = get_stored(others, old)
        assert now.labels["patched"] == "yes"
        assert now.spec == old.spec


def test_a_status_patch_changes_the_status_only(executor: PlanExecutor, others: Store) -> None:
    old = put(others, pod("a"))

    def mark_failed(obj: KubeObject) -> KubeObject:
        assert isinstance(obj, Pod)
        return add_label(obj).with_status(obj.status.replace(phase="Failed"))

    executor.execute(Plan().then(Patch(old, mark_failed, status=True)), None)
    now = get_stored(others, old)
    assert isinstance(now, Pod)
    assert (now.status.phase, now.labels) == ("Failed", {})


@pytest.mark.parametrize("replaced", [False, True])
def test_what_is_gone_or_replaced_is_done_with(
    executor: PlanExecutor, others: Store, replaced: bool
) -> None:
    old = put(others, pod("a"))
    others.delete(PODS, old.key)
    if replaced:
        put(others, pod("a", metadata={"uid": "another"}))
    for cached in (old, METADATA.convert(old)):
        plan = Plan().then(Patch(cached, add_label)).then(Delete(cached))
        outcome = executor.execute(plan, None)
        assert outcome.failures == ()
        assert [obj for _, obj in outcome.done] == [cached, cached]
    assert exists(others, old) is replaced


# --- deletions


def test_a_deletion_that_was_overtaken_happens_all_the_same(
    executor: PlanExecutor, store: WatchedStore, others: Store
) -> None:
    old = put(others, pod("a"))
    store.meanwhile = lambda: touch(others, old)
    assert executor.execute(Plan().then(Delete(old)), None).error is None
    assert not exists(others, old)


def test_a_deletion_of_one_version_is_refused_for_another(
    executor: PlanExecutor, store: WatchedStore, others: Store
) -> None:
    old = put(others, pod("a"))
    options = DeleteOptions(uid=old.uid, resource_version=old.metadata.resource_version or "")
    store.meanwhile = lambda: touch(others, old)
    outcome = executor.execute(Plan().then(Delete(old, options)), None)
    assert isinstance(outcome.error, errors.Conflict)
    outcome = executor.execute(Plan().then(Delete(METADATA.convert(old), options)), None)
    assert isinstance(outcome.error, errors.Conflict)
    assert exists(others, old)


def test_a_metadata_only_pod_gets_its_grace_period(executor: PlanExecutor, others: Store) -> None:
    old = put(others, pod("a", node="n1", termination_grace_period_seconds=17))
    executor.execute(Plan().then(Delete(METADATA.convert(old))), None)
    now = get_stored(others, old)
    assert now.metadata.deletion_grace_period_seconds == 17


def test_a_failed_guard_refuses_the_write(executor: PlanExecutor, others: Store) -> None:
    old = put(others, pod("a"))
    guard = Absent(PODS.name, old.key, old.uid)
    outcome = executor.execute(Plan().then(Delete(old, guards=(guard,))), None)
    assert isinstance(outcome.error, errors.GuardFailed)
    assert exists(others, old)


# --- several writes on one object


def test_writes_on_one_object_build_on_each_other(
    executor: PlanExecutor, store: WatchedStore, others: Store
) -> None:
    old = put(others, pod("a"))
    plan = Plan().then(Patch(old, add_label)).then(Delete(old))
    outcome = executor.execute(plan, None)
    assert (len(outcome.done), store.calls, store.reads) == (2, [1, 1], 0)


def test_after_a_failure_later_writes_on_the_object_are_left_out(
    executor: PlanExecutor, others: Store
) -> None:
    a, b = put(others, pod("a")), put(others, pod("b"))
    refused = Absent(PODS.name, a.key)
    plan = (
        Plan().then(Patch(a, add_label, (refused,)), Patch(b, add_label)).then(Delete(a), Delete(b))
    )
    outcome = executor.execute(plan, None)
    assert (len(outcome.failures), outcome.skipped) == (1, 1)
    assert (exists(others, a), exists(others, b)) == (True, False)


# --- updates and status


def test_an_update_of_an_old_version_is_a_conflict(executor: PlanExecutor, others: Store) -> None:
    old = put(others, pod("a"))
    touch(others, old)
    outcome = executor.execute(Plan().then(Update(add_label(old), old)), None)
    assert isinstance(outcome.error, errors.Conflict)


def test_a_status_that_lost_a_race_is_written_once_more(
    executor: PlanExecutor, store: WatchedStore, others: Store
) -> None:
    rs = put(others, replica_set())
    resource = rs.resource
    patch = {"spec": {"replicas": 9}}
    store.meanwhile = lambda: others.patch(resource, rs.key, patch)
    changed = rs.with_status(rs.status.replace(replicas=4))
    plan = Plan(status_after=lambda _: UpdateStatus(changed, rs))
    assert executor.execute(plan, None).error is None
    now = get_stored(others, rs)
    assert (now.spec.replicas, now.status.replicas) == (9, 4)


def test_a_status_that_loses_twice_is_a_failure(
    executor: PlanExecutor, store: WatchedStore, others: Store
) -> None:
    rs = put(others, replica_set())
    resource = rs.resource

    def meddle() -> None:
        replicas = get_stored(others, rs).spec.replicas or 0
        others.patch(resource, rs.key, {"spec": {"replicas": replicas + 1}})
        store.meanwhile = meddle

    store.meanwhile = meddle
    changed = rs.with_status(rs.status.replace(replicas=4))
    plan = Plan(status_after=lambda _: UpdateStatus(changed, rs))
    assert isinstance(executor.execute(plan, None).error, errors.Conflict)


def test_the_status_of_what_is_gone_is_no_failure(
    executor: PlanExecutor, store: WatchedStore, others: Store
) -> None:
    rs = put(others, replica_set())
    store.meanwhile = lambda: others.delete(rs.resource, rs.key)
    changed = rs.with_status(rs.status.replace(replicas=4))
    plan = Plan(status_after=lambda _: UpdateStatus(changed, rs))
    assert executor.execute(plan, None).error is None
    assert not exists(others, rs)


def test_the_status_is_computed_from_what_became_of_the_writes(executor: PlanExecutor) -> None:
    seen: list[Outcome] = []
    plan = Plan().then(Create(new_pod("a")), Create(bad_pod()))
    plan.status_after = seen.append
    executor.execute(plan, None)
    assert [(len(outcome.done), len(outcome.failures)) for outcome in seen] == [(1, 1)]


def test_a_full_memory_is_raised_so_that_the_key_is_retried(
    executor: PlanExecutor, io: RedisIO
) -> None:
    io.execute("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(errors.OutOfMemory):
            executor.execute(Plan().then(Create(new_pod())), None)
    finally:
        io.execute("CONFIG", "SET", "maxmemory", "0")
