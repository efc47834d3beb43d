"""Tests which plan the ReplicaSet controller makes for a set of objects."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm import errors
from kcm.api.apps_v1 import ReplicaSet, ReplicaSetStatus
from kcm.api.core_v1 import Pod, PodTemplateSpec
from kcm.apimachinery.meta_v1 import (
    KubeObject,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
)
from kcm.controllers.replicaset import ReplicaSetController, ReplicaSetOptions
from kcm.controllers.replicaset.controller import BURST_REPLICAS
from kcm.helpers.owners import owner_keys
from kcm.reconcile.contract import Change, own_key
from kcm.reconcile.plan import Create, Delete, Failure, Outcome, Patch, Plan
from kcm.testing.builders import START, pod, replica_set
from kcm.testing.views import NOW, FakeView


def reconcile(*objects: KubeObject, key: str = "default/web", gate: bool = False) -> Plan:
    options = ReplicaSetOptions(deployment_replicaset_terminating_replicas=gate)
    controller = ReplicaSetController(options)
    return controller.reconcile(key, FakeView(*objects, controller=controller))


def counts(plan: Plan) -> tuple[int, int, int]:
    """Returns how many creations, deletions and patches a plan has."""
    kinds = [type(write) for write in plan.writes]
    return kinds.count(Create), kinds.count(Delete), kinds.count(Patch)


def status_after(plan: Plan) -> ReplicaSetStatus:
    """Returns the status that is written once all writes of the plan have succeeded."""
    update = plan.status_after(Outcome())
    assert update is not None
    assert isinstance(update.new, ReplicaSet)
    return update.new.status


# --- how many


@pytest.mark.parametrize(
    ("wanted", "present", "expected"),
    [
        (2, 2, (0, 0, 0)),
        (2, 0, (2, 0, 0)),
        (3, 1, (2, 0, 0)),
        (0, 0, (0, 0, 0)),
        (0, 3, (0, 3, 0)),
        (1, 4, (0, 3, 0)),
        (BURST_REPLICAS + 100, 0, (BURST_REPLICAS, 0, 0)),
        (0, BURST_REPLICAS + 1, (0, BURST_REPLICAS, 0)),
        (None, 0, (1, 0, 0)),
    ],
)
def test_what_is_missing_is_created_and_what_is_too_much_deleted(
    wanted: int | None, present: int, expected: tuple[int, int, int]
) -> None:
    rs = replica_set(replicas=wanted)
    pods = [pod(f"web-{n}", owner=rs) for n in range(present)]
    assert counts(reconcile(rs, *pods)) == expected


def test_an_absent_replica_set_is_nothing_to_do() -> None:
    assert reconcile() == Plan()


def test_creation_starts_slowly() -> None:
    (batch,) = reconcile(replica_set(replicas=5)).batches
    assert batch.slow_start


def test_terminal_and_dying_pods_do_not_count() -> None:
    rs = replica_set(replicas=3)
    pods = [
        pod("a", owner=rs, phase="Failed"),
        pod("b", owner=rs, phase="Succeeded"),
        pod("c", owner=rs, phase="Running", deleting=START),
        pod("d", owner=rs, phase="Running"),
    ]
    assert counts(reconcile(rs, *pods)) == (2, 0, 0)


@pytest.mark.parametrize(
    ("wanted", "present", "waits"),
    [
        (1, 0, True),
        (0, 1, True),
        (BURST_REPLICAS, 0, True),
        (BURST_REPLICAS + 1, 0, False),
        (0, BURST_REPLICAS + 1, False),
    ],
)
def test_the_status_waits_for_the_next_sync_unless_more_syncs_write_pods(
    wanted: int, present: int, *, waits: bool
) -> None:
    rs = replica_set(replicas=wanted)
    plan = reconcile(rs, *(pod(f"p{number}", owner=rs) for number in range(present)))
    assert plan.status_can_wait is waits


def test_pods_of_others_and_of_other_namespaces_do_not_count() -> None:
    rs, other = replica_set(replicas=1), replica_set("other", labels={"app": "web"})
    pods = [pod("a", owner=other), pod("b", namespace="elsewhere", labels={"app": "web"})]
    assert counts(reconcile(rs, other, *pods)) == (1, 0, 0)


def test_a_deleted_replica_set_neither_creates_nor_deletes_but_reports() -> None:
    rs = replica_set(replicas=3, metadata={"deletion_timestamp": START})
    plan = reconcile(rs, pod("a", owner=rs), pod("b", labels={"app": "web"}))
    assert plan.writes == []
    assert status_after(plan).replicas == 1


def test_an_invalid_selector_is_left_alone() -> None:
    bad = LabelSelectorRequirement(key="a", operator="Near", values=["b"])
    rs = replica_set(selector=LabelSelector(match_expressions=[bad]))
    assert reconcile(rs) == Plan()


def test_a_node_full_of_the_deployments_other_pods_gives_first() -> None:
    deployment = replica_set("deployment")
    rs = replica_set(replicas=1, owner=deployment)
    sibling = replica_set("sibling", owner=deployment)
    on: dict[str, Any] = {"phase": "Running", "ready": True}
    own = [pod("alone", owner=rs, node="n1", **on), pod("crowded", owner=rs, node="n2", **on)]
    others = [pod(f"s{n}", owner=sibling, node="n2", **on) for n in range(3)]
    (write,) = reconcile(rs, sibling, *own, *others).writes
    assert isinstance(write, Delete)
    assert write.old.name == "crowded"


# --- the pod that is made


def get_created_pod(rs: KubeObject) -> Pod:
    write = reconcile(rs).writes[0]
    assert isinstance(write, Create)
    assert isinstance(write.obj, Pod)
    return write.obj


def test_a_pod_is_made_from_the_template_and_owned() -> None:
    spec = pod("x", priority=7).spec
    meta = ObjectMeta(
        labels={"app": "web", "more": "yes"}, annotations={"note": "1"}, finalizers=["a.io/b"]
    )
    rs = replica_set(labels={"app": "web"}, template=PodTemplateSpec(metadata=meta, spec=spec))
    created_pod = get_created_pod(rs)
    assert created_pod.metadata.generate_name == "web-"
    assert created_pod.metadata.name is None
    assert created_pod.namespace == "default"
    assert created_pod.labels == {"app": "web", "more": "yes"}
    assert created_pod.annotations == {"note": "1"}
    assert created_pod.metadata.finalizers == ["a.io/b"]
    assert created_pod.spec == rs.spec.template.spec
    (owner,) = created_pod.metadata.owner_references or []
    assert (owner.api_version, owner.kind, owner.name) == ("apps/v1", "ReplicaSet", "web")
    assert (owner.uid, owner.controller, owner.block_owner_deletion) == (rs.uid, True, True)


def test_all_pods_of_a_batch_share_one_spec_that_is_not_the_template() -> None:
    rs = replica_set(replicas=3)
    created = [write.obj for write in reconcile(rs).writes if isinstance(write, Create)]
    specs = {id(obj.spec) for obj in created if isinstance(obj, Pod)}
    assert len(specs) == 1
    assert specs != {id(rs.spec.template.spec)}


# --- claiming


def test_a_matching_orphan_is_adopted_before_anything_else() -> None:
    rs = replica_set(replicas=2)
    plan = reconcile(rs, pod("orphan", labels={"app": "web"}))
    first, second = plan.batches
    (adoption,) = first.writes
    assert isinstance(adoption, Patch)
    assert first.essential
    assert [str(guard) for guard in adoption.guards] == [
        f"exists replicasets.apps default/web {rs.uid}"
    ]
    assert len(second.writes) == 1


def test_a_pod_that_no_longer_matches_is_released_and_replaced() -> None:
    rs = replica_set(replicas=1)
    plan = reconcile(rs, pod("stray", owner=rs, labels={"app": "changed"}))
    release, creation = plan.writes
    assert isinstance(release, Patch)
    assert release.change(release.old).metadata.owner_references is None
    assert isinstance(creation, Create)


# --- status and coming back


def test_the_status_is_not_written_when_nothing_changed() -> None:
    rs = replica_set(replicas=0, status={"observed_generation": 1})
    plan = reconcile(rs)
    assert plan.status_after(Outcome()) is None


@pytest.mark.parametrize("gate", [True, False])
def test_terminating_replicas_are_reported_behind_their_gate(gate: bool) -> None:
    rs = replica_set(replicas=1)
    pods = [
        pod("a", owner=rs, phase="Running"),
        pod("b", owner=rs, phase="Running", deleting=START),
        pod("c", owner=rs, phase="Failed", deleting=START),
        pod("d", labels={"app": "web"}, phase="Running", deleting=START),
    ]
    plan = reconcile(rs, *pods, gate=gate)
    assert status_after(plan).terminating_replicas == (1 if gate else None)


@pytest.mark.parametrize(
    ("ready_for", "expected"),
    [([], None), ([10], 20.0), ([10, 25], 5.0), ([30], 0.001), ([31], None), ([31, 5], 25.0)],
)
def test_it_comes_back_when_the_next_pod_becomes_available(
    ready_for: list[int], expected: float | None
) -> None:
    rs = replica_set(replicas=3, min_ready_seconds=30)
    pods = [
        pod(f"p{n}", owner=rs, phase="Running", ready=True, ready_since=NOW - timedelta(seconds=s))
        for n, s in enumerate(ready_for)
    ]
    waiting = pod("unready", owner=rs, phase="Running", ready=False, ready_since=NOW)
    assert reconcile(rs, *pods, waiting).requeue_after == expected


# --- events


def events_of(plan: Plan, outcome: Outcome) -> list[tuple[str, str, str]]:
    return [(event.type, event.reason, event.message) for event in plan.events_after(outcome)]


def test_each_created_and_deleted_pod_is_told_of() -> None:
    rs = replica_set(replicas=1)
    plan, new_pod, old = reconcile(rs), pod("web-x"), pod("web-old")
    done = [(plan.writes[0], new_pod), (Delete(old), old.with_metadata(resource_version="9"))]
    assert events_of(plan, Outcome(done)) == [
        ("Normal", "SuccessfulCreate", "Created pod: web-x"),
        ("Normal", "SuccessfulDelete", "Deleted pod: web-old"),
    ]


def test_a_pod_that_was_gone_already_is_not_told_of() -> None:
    old = pod("web-old")
    assert events_of(reconcile(replica_set(replicas=1)), Outcome([(Delete(old), old)])) == []


def test_failures_are_told_of_in_upstreams_words() -> None:
    plan = reconcile(replica_set(replicas=1))
    refused = errors.Forbidden("exceeded quota")
    outcome = Outcome(
        failures=[Failure(plan.writes[0], refused), Failure(Delete(pod("web-old")), refused)]
    )
    assert events_of(plan, outcome) == [
        ("Warning", "FailedCreate", "Error creating: exceeded quota"),
        ("Warning", "FailedDelete", "Error deleting: exceeded quota"),
    ]


# --- which keys a change touches

RS = replica_set()
KEYS = owner_keys(ReplicaSet)
TWIN = replica_set("twin", labels={"app": "web"})
OWN = pod("a", owner=RS)
ORPHAN = pod("b", labels={"app": "web"})
STRANGER = pod("c", labels={"app": "unrelated"})


def newer(obj: Pod, **metadata: object) -> Pod:
    return obj.with_metadata(resource_version="2", **metadata)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, OWN, ["default/web"]),
        (OWN, None, ["default/web"]),
        (OWN, newer(OWN), ["default/web"]),
        (OWN, OWN, []),  # a resync
        (OWN, newer(OWN, deletion_timestamp=START), ["default/web"]),
        (None, newer(OWN, deletion_timestamp=START), ["default/web"]),
        (None, ORPHAN, ["default/twin", "default/web"]),
        (ORPHAN, newer(ORPHAN), []),
        (ORPHAN, None, []),
        (None, newer(ORPHAN, deletion_timestamp=START), []),
        (STRANGER, newer(STRANGER, labels={"app": "web"}), ["default/twin", "default/web"]),
        (OWN, newer(OWN, owner_references=None), ["default/web", "default/twin", "default/web"]),
        (ORPHAN, newer(ORPHAN, owner_references=OWN.metadata.owner_references), ["default/web"]),
        (None, STRANGER, []),
        (None, pod("d", owner=pod("not-a-replica-set")), []),
        (None, pod("e", owner=RS.with_metadata(uid="earlier")), []),
        (None, pod("f", owner=RS, namespace="elsewhere"), []),
    ],
)
def test_a_pods_change_wakes_its_owner_its_former_one_or_all_that_match(
    old: Pod | None, new: Pod | None, expected: list[str]
) -> None:
    assert list(KEYS(Change(old, new), FakeView(RS, TWIN))) == expected


def test_a_pod_that_changes_hands_wakes_both_owners() -> None:
    moved = newer(OWN, owner_references=pod("x", owner=TWIN).metadata.owner_references)
    keys = list(KEYS(Change(OWN, moved), FakeView(RS, TWIN)))
    assert keys == ["default/web", "default/twin"]


def test_an_empty_selector_matches_no_orphan() -> None:
    everything = replica_set("all", selector=LabelSelector())
    assert list(KEYS(Change(None, ORPHAN), FakeView(everything))) == []


def test_a_replica_set_is_its_own_key_whatever_happens_to_it() -> None:
    for change in (Change(None, RS), Change(RS, RS), Change(RS, None)):
        assert list(own_key(change, FakeView())) == ["default/web"]


def test_syncs_run_at_a_time_are_an_option() -> None:
    controller = ReplicaSetController(ReplicaSetOptions(concurrent_replicaset_syncs=9))
    assert controller.concurrent_syncs() == 9
    assert ReplicaSetController().concurrent_syncs() == 5
