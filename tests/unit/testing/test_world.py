"""Tests that a World carries plans out as a control plane does."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api.core_v1 import ConfigMap, Pod, ResourceQuota, ResourceQuotaSpec, ResourceQuotaStatus
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import (
    Create,
    Delete,
    DeleteCollection,
    Limit,
    Outcome,
    PassPlan,
    Plan,
    Update,
    UpdateStatus,
)
from kcm.store.writes.guards import TokenAvailable
from kcm.testing.builders import START, config_map, pod
from kcm.testing.world import World
from tests.new_objects import strip_store_fields


def new(name: str, namespace: str = "default") -> Create:
    return Create(strip_store_fields(config_map(name, namespace=namespace)))


def names(world: World) -> list[str]:
    return sorted(obj.name for obj in world.of(ConfigMap))


def test_after_a_failed_essential_batch_nothing_more_is_written() -> None:
    world = World(config_map("taken"))
    statuses: list[Outcome] = []

    def status(outcome: Outcome) -> UpdateStatus | None:
        statuses.append(outcome)
        return None

    plan = Plan(status_after=status).then(new("taken"), essential=True).then(new("later"))
    outcome = world.carry_out(plan)
    assert names(world) == ["taken"]
    assert ([type(f.error) for f in outcome.failures], outcome.skipped) == (
        [errors.AlreadyExists],
        1,
    )
    assert statuses == []


def test_a_plan_that_failed_is_followed_by_none_unless_its_batch_is_optional() -> None:
    world = World(config_map("taken"))

    def follow(outcome: Outcome) -> Plan:
        return Plan().then(new(f"after-{len(outcome.failures)}"))

    world.carry_out(Plan(plan_after=follow).then(new("taken")))
    assert names(world) == ["taken"]
    world.carry_out(Plan(plan_after=follow).then(new("taken"), optional=True))
    assert names(world) == ["after-1", "taken"]
    assert [type(failure.error) for failure in world.failures] == [errors.AlreadyExists] * 2


def test_a_slow_start_ends_with_the_first_batch_that_fails() -> None:
    world = World(config_map("b"))
    writes = [new(name) for name in "abcdefg"]
    outcome = world.carry_out(Plan().then(*writes, slow_start=True))
    assert names(world) == ["a", "b", "c"]
    assert outcome.skipped == 4


def test_an_update_of_an_old_version_conflicts_and_of_a_missing_object_fails() -> None:
    stale = config_map("a")
    world = World(stale)
    world.put(stale.with_metadata(labels={"by": "somebody"}))
    changed = stale.with_metadata(labels={"by": "us"})
    with pytest.raises(errors.Conflict):
        world.write(Update(changed, stale))
    world.remove(stale)
    with pytest.raises(errors.NotFound):
        world.write(Update(changed, stale))
    world.write(Delete(stale))


def test_what_is_created_is_admitted_validated_and_charged() -> None:
    hard = {"configmaps": Quantity(1)}
    status = ResourceQuotaStatus(hard=hard, used={"configmaps": Quantity(0)})
    meta = ObjectMeta(name="one", namespace="few", uid="q", resource_version="1")
    world = World(ResourceQuota(metadata=meta, spec=ResourceQuotaSpec(hard=hard), status=status))
    world.write(new("a", "few"))
    with pytest.raises(errors.Forbidden, match="exceeded quota: one"):
        world.write(new("b", "few"))
    with pytest.raises(errors.NotFound, match='namespaces "none" not found'):
        world.write(new("c", "none"))
    world.write(Create(strip_store_fields(pod("p"))))
    (created,) = world.of(Pod)
    assert (created.metadata.creation_timestamp, created.spec.priority) == (world.now, 0)


def test_changes_and_events_are_seen_in_order() -> None:
    seen: list[tuple[str, str]] = []

    def watch(change: Change) -> None:
        seen.append((change.object.name, "gone" if change.new is None else "there"))

    world = World(config_map("a"), now=START, watch=watch)
    plan = Plan().then(new("b"), Delete(config_map("a"))).record(config_map("a"), "Done", "it is")
    world.carry_out(plan)
    # A create that finds no namespace of the system is repeated when that is created.
    assert seen == [("a", "gone"), ("default", "there"), ("b", "there")]
    assert [event.reason for event in world.events] == ["Done"]


def test_steps_are_carried_out_in_order_up_to_an_essential_one_that_fails() -> None:
    world = World(config_map("old", namespace="team"))
    sweep = DeleteCollection(ConfigMap.resource, "team")
    plan = Plan([sweep]).then(new("a", "team"), essential=True)
    world.carry_out(plan)
    assert names(world) == ["a"]
    again = Plan().then(new("a", "team"), essential=True)
    again.steps.append(sweep)
    assert not world.carry_out(again).deletions
    assert names(world) == ["a"]


def test_a_pass_sets_the_rates_that_its_writes_pay() -> None:
    world = World(config_map("a"), config_map("b"))
    paid = (TokenAvailable("bucket"),)
    plan = PassPlan(limits={"bucket": Limit(1.0)})
    outcome = world.carry_out(plan.then(*(Delete(o, guards=paid) for o in world.of(ConfigMap))))
    assert [type(failure.error) for failure in outcome.failures] == [errors.LimitReached]
    assert len(world.of(ConfigMap)) == 1


def test_a_collection_is_deleted_and_what_stays_is_reported() -> None:
    held = pod("held", namespace="team").with_metadata(finalizers=["a/b"])
    world = World(held, pod("free", namespace="team"))
    outcome = world.carry_out(Plan([DeleteCollection(held.resource, "team")]))
    assert [(one.deleted, one.remaining) for one in outcome.deletions] == [(1, 1)]
