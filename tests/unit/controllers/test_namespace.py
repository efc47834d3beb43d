"""Tests how the contents of a deleted namespace are deleted, in one and in several syncs."""

from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import ConfigMap, Namespace, NamespaceCondition
from kcm.api.scheme import BUILT_IN, Scheme
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.namespace import (
    NamespaceController,
    conditions,
    terminating_namespace_of,
)
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import DeleteCollection, Outcome, Plan
from kcm.store.writes.collections import CollectionDeletion
from kcm.testing.builders import config_map, namespace, pod
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World

PODS, MAPS = BUILT_IN.lookup("pods"), BUILT_IN.lookup("configmaps")


def build_terminating_namespace(**spec: Any) -> Namespace:
    spec.setdefault("finalizers", ["kubernetes"])
    return namespace("team", phase="Terminating", metadata={"deletion_timestamp": NOW}, **spec)


def sync(world: World) -> Any:
    plan = NamespaceController().reconcile("team", world.view())
    return world.carry_out(plan)


def namespace_in(world: World) -> Namespace | None:
    return next((obj for obj in world.of(Namespace) if isinstance(obj, Namespace)), None)


def conditions_of(world: World) -> dict[str, tuple[str | None, str | None]]:
    present = namespace_in(world)
    assert present is not None
    return {c.type: (c.status, c.message) for c in present.status.conditions or ()}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(None, id="missing"),
        pytest.param(namespace("team"), id="active"),
        pytest.param(build_terminating_namespace(finalizers=["other"]), id="waiting for others"),
    ],
)
def test_nothing_is_done_to(obj: Namespace | None) -> None:
    view = FakeView(*([obj] if obj else []), controller=NamespaceController())
    assert NamespaceController().reconcile("team", view) == Plan()


def test_an_empty_namespace_goes_at_once() -> None:
    world = World(build_terminating_namespace())
    sync(world)
    assert namespace_in(world) is None


def test_everything_in_it_goes_and_nothing_outside() -> None:
    outside = config_map("kept", namespace="default")
    inside: list[KubeObject] = [pod("a", namespace="team"), config_map("c", namespace="team")]
    world = World(build_terminating_namespace(), outside, *inside)
    sync(world)
    assert [obj.name for obj in world.objects.values()] == ["kept"]


def test_what_others_wait_for_stays_until_the_pods_are_gone() -> None:
    bound = pod("a", namespace="team", node="n1")
    world = World(build_terminating_namespace(), bound, config_map("c", namespace="team"))
    sync(world)
    assert {obj.name for obj in world.objects.values()} == {"team", "a", "c"}
    assert conditions_of(world)["NamespaceContentRemaining"] == (
        "True",
        "Some resources are remaining: pods. has 1 resource instances",
    )
    world.remove(world.objects["pods", "team/a"])
    sync(world)
    assert not world.objects


def test_pods_are_waited_for_half_their_grace() -> None:
    world = World(build_terminating_namespace(), pod("a", namespace="team", node="n1"))
    plan = NamespaceController().reconcile("team", world.view())
    assert plan.plan_after is not None
    deletion = CollectionDeletion(PODS, "team", remaining=1, grace=10)
    assert plan.plan_after(_outcome(deletion)).requeue_after == 6


def test_finalizers_are_named_and_waited_for() -> None:
    held = config_map("c", namespace="team", metadata={"finalizers": ["example.com/x"]})
    world = World(build_terminating_namespace(), held)
    sync(world)
    assert conditions_of(world)["NamespaceFinalizersRemaining"] == (
        "True",
        "Some content in the namespace has finalizers remaining: "
        "example.com/x in 1 resource instances",
    )
    assert conditions_of(world)["NamespaceDeletionContentFailure"][0] == "False"


def test_one_kind_that_cannot_be_deleted_does_not_hide_the_others_75788() -> None:
    broken = CollectionDeletion(
        MAPS, "team", remaining=1, error=errors.KcmError("c cannot be read")
    )
    held = CollectionDeletion(PODS, "team", remaining=2, finalizers={"example.com/x": 2})
    messages = {c.type: c.message for c in conditions([broken, held])}
    assert messages["NamespaceDeletionContentFailure"] == (
        "Failed to delete all resource types, 1 remaining: c cannot be read"
    )
    assert messages["NamespaceContentRemaining"] == (
        "Some resources are remaining: configmaps. has 1 resource instances, "
        "pods. has 2 resource instances"
    )


def test_a_refusal_is_tried_again_with_backoff() -> None:
    plan = NamespaceController().reconcile("team", World(build_terminating_namespace()).view())
    assert plan.plan_after is not None
    rest = plan.plan_after(_outcome(CollectionDeletion(PODS, "team")))
    assert rest.plan_after is not None
    waiting = rest.plan_after(_outcome(CollectionDeletion(MAPS, "team", remaining=1)))
    assert waiting.error is not None
    assert waiting.requeue_after is None


def test_while_the_kinds_of_a_group_are_not_known_the_namespace_stays() -> None:
    scheme = Scheme()
    scheme.replace_all(scheme.served(), {"example.com/v1": "no endpoints"})
    world = World(build_terminating_namespace(), config_map("c", namespace="team"))
    view = FakeView(*world.objects.values(), scheme=scheme)
    world.carry_out(NamespaceController().reconcile("team", view))
    assert [type(obj) for obj in world.objects.values()] == [Namespace]
    assert conditions_of(world)["NamespaceDeletionDiscoveryFailure"] == (
        "True",
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of "
        "server APIs: example.com/v1: no endpoints",
    )


@pytest.mark.parametrize(
    "present",
    [
        pytest.param(namespace("team", metadata={"uid": "another"}), id="a new one"),
        pytest.param(
            namespace("team", metadata={"uid": "another", "deletion_timestamp": NOW}),
            id="a new one that goes, too",
        ),
    ],
)
def test_a_cache_that_is_behind_costs_the_next_namespace_of_the_name_nothing(
    present: Namespace,
) -> None:
    behind = World(build_terminating_namespace()).view()
    plan = NamespaceController().reconcile("team", behind)
    world = World(present, config_map("kept", namespace="team"))
    with pytest.raises(errors.CacheNotSynced, match="namespaces team is not the one that"):
        world.carry_out(plan)
    assert world.of(ConfigMap)


def test_of_a_namespace_that_is_gone_nothing_is_left_to_do() -> None:
    behind = World(build_terminating_namespace()).view()
    outcome = World().carry_out(NamespaceController().reconcile("team", behind))
    assert outcome.deletions == ()


def test_events_go_last() -> None:
    plan = NamespaceController().reconcile("team", World(build_terminating_namespace()).view())
    assert plan.plan_after is not None
    rest = plan.plan_after(_outcome(CollectionDeletion(PODS, "team")))
    first, last = plan.steps[1], rest.steps[-1]
    assert isinstance(first, DeleteCollection)
    assert isinstance(last, DeleteCollection)
    assert [step.resource.name for step in (first, last)] == [
        "pods",
        "events",
    ]


def test_a_pod_that_goes_wakes_its_terminating_namespace_only() -> None:
    gone = Change(pod("a", namespace="team"), None)
    view = FakeView(build_terminating_namespace(), controller=NamespaceController())
    assert list(terminating_namespace_of(gone, view)) == ["team"]
    still = FakeView(namespace("team"), controller=NamespaceController())
    assert list(terminating_namespace_of(gone, still)) == []
    assert list(terminating_namespace_of(Change(None, gone.object), view)) == []


def test_a_condition_that_stays_keeps_its_time() -> None:
    world = World(build_terminating_namespace(), pod("a", namespace="team", node="n1"))
    sync(world)
    before = namespace_in(world)
    sync(world)
    assert namespace_in(world) is before  # nothing was written


def test_a_namespace_terminates_from_its_deletion_on_and_says_what_stays() -> None:
    held = config_map("c", namespace="team", metadata={"finalizers": ["example.com/x"]})
    active = namespace("team", finalizers=["kubernetes"])
    world = World(active, held)
    world.delete(active)
    before = namespace_in(world)
    assert before is not None
    assert before.status.phase == "Terminating"
    sync(world)
    assert not world.failures
    assert [status for status, _ in conditions_of(world).values()] == ["False"] * 3 + ["True"] * 2


def test_one_that_was_deleted_without_a_phase_gets_it() -> None:
    old = build_terminating_namespace()
    old = old.with_status(old.status.replace(phase="Active"))
    world = World(old, pod("a", namespace="team", node="n1"))
    sync(world)
    present = namespace_in(world)
    assert present is not None
    assert present.status.phase == "Terminating"


def test_conditions_keep_their_places() -> None:
    """Upstream's TestUpdateConditions: an existing condition is changed in its place."""
    strange = NamespaceCondition(type="Strange", status="True")
    last = NamespaceCondition(type="NamespaceContentRemaining", status="False")
    old = build_terminating_namespace()
    old = old.with_status(old.status.replace(conditions=[last, strange]))
    world = World(old, pod("a", namespace="team", node="n1"))
    sync(world)
    assert list(conditions_of(world)) == [
        "NamespaceContentRemaining",
        "Strange",
        "NamespaceDeletionDiscoveryFailure",
        "NamespaceDeletionGroupVersionParsingFailure",
        "NamespaceDeletionContentFailure",
        "NamespaceFinalizersRemaining",
    ]
    assert conditions_of(world)["NamespaceContentRemaining"][0] == "True"


def test_conditions_are_fine_again_while_others_have_to_finish() -> None:
    world = World(
        build_terminating_namespace(finalizers=["kubernetes", "example.com/other"]),
        pod("a", namespace="team", node="n1"),
    )
    sync(world)
    assert conditions_of(world)["NamespaceContentRemaining"][0] == "True"
    world.remove(world.objects["pods", "team/a"])
    sync(world)
    assert {status for status, _ in conditions_of(world).values()} == {"False"}
    present = namespace_in(world)
    assert present is not None
    assert (present.spec.finalizers, world.failures) == (["example.com/other"], [])


def _outcome(deletion: CollectionDeletion) -> Outcome:
    return Outcome(deletions=[deletion])
