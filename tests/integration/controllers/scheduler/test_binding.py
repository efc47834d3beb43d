"""Bindings fail if the cluster is no longer as the pass saw it."""

from __future__ import annotations

from kcm import errors
from kcm.api.core_v1 import Container, Pod, ResourceRequirements
from kcm.apimachinery.quantity import Quantity
from kcm.reconcile.plan import Outcome
from kcm.store import Guard, Store
from kcm.store.options import DeleteOptions, Subresource
from kcm.store.strategies.pod_binding import bind_to_node
from kcm.store.writes.guards import EntryUnchanged
from tests.integration.controllers.scheduler.conftest import NODES, PODS, OneScheduler
from tests.new_objects import node, pod


def build_containers(cpu: str) -> list[Container]:
    wanted = ResourceRequirements(requests={"cpu": Quantity(cpu)})
    return [Container(name="c", image="nginx:1", resources=wanted)]


def node_of(store: Store, name: str) -> str:
    obj = store.get(PODS, f"default/{name}")
    assert isinstance(obj, Pod)
    return obj.spec.node_name or ""


def bind(store: Store, name: str, where: str) -> None:
    """Binds a pod, as pods/binding does."""
    obj = store.get(PODS, f"default/{name}")
    assert isinstance(obj, Pod)
    created = obj.metadata.creation_timestamp
    assert created is not None
    store.modify(
        PODS,
        obj.key,
        lambda _: bind_to_node(obj, where, created),
        subresource=Subresource.BINDING,
    )


def refusals(outcome: Outcome) -> list[type[Exception]]:
    return [type(failure.error) for failure in outcome.failures]


def test_a_pod_is_bound_and_says_so(store: Store) -> None:
    store.create(node("n1"))
    store.create(pod("web", containers=build_containers("1")))
    assert not OneScheduler(store).run().failures
    obj = store.get(PODS, "default/web")
    assert isinstance(obj, Pod)
    assert obj.spec.node_name == "n1"
    conditions = obj.status.conditions or []
    assert [(c.type, c.status) for c in conditions] == [("PodScheduled", "True")]


def test_a_batch_may_put_many_pods_on_one_node(store: Store) -> None:
    store.create(node("n1", cpu="64", pods=400))
    for number in range(150):  # more than fit into one call of the script
        store.create(pod(f"web-{number}", containers=build_containers("100m")))
    outcome = OneScheduler(store).run()
    assert not outcome.failures
    assert len(store.by_index("node:n1", PODS)) == 150


def test_of_two_schedulers_that_saw_the_same_room_one_gets_it(store: Store) -> None:
    store.create(node("n1", cpu="1"))
    store.create(pod("a", scheduler_name="one", containers=build_containers("1")))
    store.create(pod("b", scheduler_name="two", containers=build_containers("1")))
    first, second = OneScheduler(store, "one"), OneScheduler(store, "two")
    first.look()
    second.look()
    plans = first.plan(), second.plan()
    assert refusals(first.carry_out(plans[0])) == []
    assert refusals(second.carry_out(plans[1])) == [errors.GuardFailed]
    assert (node_of(store, "a"), node_of(store, "b")) == ("n1", "")


def test_a_binding_by_hand_makes_what_a_pass_saw_stale(store: Store) -> None:
    store.create(node("n1", cpu="1"))
    store.create(pod("a", containers=build_containers("1")))
    store.create(pod("b", scheduler_name="nobody", containers=build_containers("1")))
    scheduler = OneScheduler(store)
    scheduler.look()
    plan = scheduler.plan()
    bind(store, "b", "n1")
    assert refusals(scheduler.carry_out(plan)) == [errors.GuardFailed]
    assert node_of(store, "a") == ""


def test_a_pod_created_on_its_node_makes_what_a_pass_saw_stale(store: Store) -> None:
    store.create(node("n1", cpu="1"))
    store.create(pod("a", containers=build_containers("1")))
    scheduler = OneScheduler(store)
    scheduler.look()
    plan = scheduler.plan()
    store.create(pod("b", node="n1", containers=build_containers("1")))
    assert refusals(scheduler.carry_out(plan)) == [errors.GuardFailed]


def test_a_release_makes_what_a_pass_saw_stale(store: Store) -> None:
    store.create(node("n1", cpu="2"))
    store.create(pod("gone", node="n1", containers=build_containers("1")))
    store.create(pod("a", containers=build_containers("1")))
    scheduler = OneScheduler(store)
    scheduler.look()
    plan = scheduler.plan()
    store.delete(PODS, "default/gone", DeleteOptions(grace_period_seconds=0))
    assert refusals(scheduler.carry_out(plan)) == [errors.GuardFailed]
    assert refusals(scheduler.run()) == []
    assert node_of(store, "a") == "n1"


def test_nothing_is_bound_to_a_node_that_went_or_came_anew(store: Store) -> None:
    store.create(node("n1"))
    store.create(pod("a", containers=build_containers("1")))
    scheduler = OneScheduler(store)
    scheduler.look()
    plan = scheduler.plan()
    store.delete(NODES, "n1")
    store.create(node("n1"))
    assert refusals(scheduler.carry_out(plan)) == [errors.GuardFailed]
    assert refusals(scheduler.run()) == []
    assert node_of(store, "a") == "n1"


def test_a_pod_that_was_refused_is_placed_by_the_next_pass(store: Store) -> None:
    store.create(node("n1", cpu="2"))
    store.create(node("n2", cpu="2"))
    store.create(pod("a", containers=build_containers("1")))
    scheduler = OneScheduler(store)
    scheduler.look()
    plan = scheduler.plan()
    store.create(pod("b", node="n1", containers=build_containers("1")))
    store.create(pod("c", node="n2", containers=build_containers("1")))
    assert refusals(scheduler.carry_out(plan)) == [errors.GuardFailed]
    assert refusals(scheduler.run()) == []
    assert node_of(store, "a") in ("n1", "n2")


def test_a_guard_of_another_pass_with_the_same_stamp_or_position_does_not_help(
    store: Store,
) -> None:
    store.create(node("n1"))
    for name in ("a", "b", "c"):
        store.create(pod(name))
    since = store.resource_version()

    def try_bind(name: str, guard: Guard) -> str:
        old = store.get(PODS, f"default/{name}")
        assert isinstance(old, Pod)
        assert old.metadata.creation_timestamp is not None
        new = bind_to_node(old, "n1", old.metadata.creation_timestamp)
        item = store.build_update(new, old, subresource=Subresource.BINDING, guards=(guard,))
        assert item is not None
        return store.write([item])[0].status

    assert try_bind("a", EntryUnchanged("node:n1", since, "x")) == "ok"
    assert try_bind("b", EntryUnchanged("node:n1", since, "y")) == "guard"
    assert try_bind("b", EntryUnchanged("node:n1", since - 1, "x")) == "guard"
    assert try_bind("b", EntryUnchanged("node:n1", since, "x")) == "ok"
    assert try_bind("c", EntryUnchanged("node:n1", store.resource_version(), "z")) == "ok"


def test_the_reason_of_a_wait_is_in_the_status_and_comes_once(store: Store) -> None:
    store.create(node("n1", cpu="1"))
    store.create(pod("a", containers=build_containers("8")))
    scheduler = OneScheduler(store)
    scheduler.run()
    obj = store.get(PODS, "default/a")
    assert isinstance(obj, Pod)
    (condition,) = obj.status.conditions or []
    assert (condition.status, condition.reason) == ("False", "Unschedulable")
    assert condition.message == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: "
        "1 Preemption is not helpful for scheduling."
    )
    before = store.resource_version()
    scheduler.run()
    assert store.resource_version() == before
