"""Tests what admission adds to new objects and refuses. The cases follow upstream's admission
tests.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import LimitRange, Pod, Toleration
from kcm.api.networking_v1 import Ingress, IngressClass
from kcm.api.node_v1 import RuntimeClass
from kcm.api.scheduling_v1 import PriorityClass
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.reconcile.executor import PlanExecutor
from kcm.reconcile.plan import Create, Plan
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.store.admission import namespaces
from kcm.store.admission.ensuring import ensure_objects
from kcm.store.admission.ingress_classes import IS_DEFAULT
from kcm.store.admission.priority import SYSTEM_CLASSES
from kcm.testing.builders import container
from kcm.testing.clock import FakeClock
from tests.new_objects import pod
from tests.typed_objects import decode_as

CLASSES = PriorityClass.resource


@pytest.fixture
def store(io: RedisIO) -> Store:
    namespaces.ensure(Store(io), "default")
    return Store(io)


def a_class(name: str, value: int, **fields: Any) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, **fields)


def priority(pod: Pod) -> tuple[int | None, str | None, str | None]:
    return pod.spec.priority, pod.spec.priority_class_name, pod.spec.preemption_policy


def test_without_classes_a_pod_has_priority_zero(store: Store) -> None:
    assert priority(store.create(pod("a"))) == (0, None, "PreemptLowerPriority")


def test_a_class_gives_its_value_and_policy(store: Store) -> None:
    store.create(a_class("high", 1000, preemption_policy="Never"))
    created_pod = store.create(pod("a", priority_class_name="high"))
    assert priority(created_pod) == (1000, "high", "Never")


def test_the_default_class_is_for_pods_that_name_none(store: Store) -> None:
    store.create(pod("before"))
    store.create(a_class("usual", 7, global_default=True))
    assert priority(store.create(pod("a"))) == (7, "usual", "PreemptLowerPriority")


def test_a_class_that_another_process_made_is_found_at_once(store: Store, io: RedisIO) -> None:
    store.create(pod("before"))
    Store(io).create(a_class("high", 1000))
    assert priority(store.create(pod("a", priority_class_name="high")))[0] == 1000


def test_there_is_one_default_at_most(store: Store) -> None:
    store.create(a_class("one", 1, global_default=True))
    two = store.create(a_class("two", 2))
    with pytest.raises(errors.Forbidden, match="one is already marked as default"):
        store.create(a_class("three", 3, global_default=True))
    with pytest.raises(errors.Forbidden, match="one is already marked as default"):
        store.update(two.replace(global_default=True))
    store.update(store.get(CLASSES, "one").with_metadata(labels={"a": "b"}))


def test_the_systems_classes_need_not_be_there(store: Store) -> None:
    created_pod = store.create(pod("a", priority_class_name="system-node-critical"))
    assert created_pod.spec.priority == 2_000_001_000
    ensure_objects(store, list(SYSTEM_CLASSES.values()))
    assert [c.name for c in store.list(CLASSES).items] == [
        "system-cluster-critical",
        "system-node-critical",
    ]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"priority_class_name": "none"}, "no PriorityClass with name none was found"),
        ({"priority": 5}, "the integer value of priority \\(5\\) must not be provided"),
        ({"preemption_policy": "Never"}, "the string value of PreemptionPolicy \\(Never\\)"),
    ],
)
def test_what_the_class_does_not_say_is_forbidden(
    store: Store, fields: dict[str, Any], why: str
) -> None:
    with pytest.raises(errors.Forbidden, match=why):
        store.create(pod("a", **fields))


def test_what_agrees_with_the_class_may_be_said(store: Store) -> None:
    store.create(a_class("high", 9))
    said = pod(
        "a", priority_class_name="high", priority=9, preemption_policy="PreemptLowerPriority"
    )
    assert priority(store.create(said))[0] == 9


def test_a_pod_stays_five_minutes_on_a_node_that_fails(store: Store) -> None:
    tolerations = [
        (t.key, t.operator, t.effect, t.toleration_seconds)
        for t in store.create(pod("a")).spec.tolerations or ()
    ]
    assert tolerations == [
        ("node.kubernetes.io/not-ready", "Exists", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "Exists", "NoExecute", 300),
    ]


@pytest.mark.parametrize(
    ("own", "added"),
    [
        (Toleration(key="node.kubernetes.io/not-ready", operator="Exists"), 1),
        (Toleration(key="node.kubernetes.io/unreachable", effect="NoExecute"), 1),
        (Toleration(key="node.kubernetes.io/unreachable", effect="NoSchedule"), 2),
        (Toleration(operator="Exists"), 0),
        (Toleration(operator="Exists", effect="NoSchedule"), 2),
    ],
)
def test_unless_it_says_so_itself(store: Store, own: Toleration, added: int) -> None:
    tolerations = store.create(pod("a", tolerations=[own])).spec.tolerations or []
    assert len(tolerations) == 1 + added
    assert tolerations[0] == own


def test_controllers_batches_are_admitted_too(store: Store) -> None:
    store.create(a_class("usual", 7, global_default=True))
    create = Create(pod("x").with_metadata(name=None, generate_name="web-"))
    outcome = PlanExecutor(store).execute(Plan().then(*[create] * 20), None)
    objects = [obj for _, obj in outcome.done]
    assert len(objects) == 20
    for obj in objects:
        assert isinstance(obj, Pod)
        assert obj.spec.priority == 7
        assert len(obj.spec.tolerations or ()) == 2


def test_a_gated_pod_says_that_it_is_blocked(store: Store) -> None:
    created_pod = store.create(pod("a", scheduling_gates=[{"name": "g"}]))
    (condition,) = created_pod.status.conditions or []
    assert (condition.type, condition.status, condition.reason, condition.message) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
        "Scheduling is blocked due to non-empty scheduling gates",
    )
    assert condition.last_transition_time == created_pod.metadata.creation_timestamp


def limit_range(name: str = "sizes", **amounts: Any) -> LimitRange:
    item = {"type": "Container", **amounts}
    return decode_as(LimitRange, {"metadata": {"name": name}, "spec": {"limits": [item]}})


def cpu(pod: Pod) -> tuple[str, str]:
    resources = pod.spec.containers[0].resources
    return str((resources.requests or {}).get("cpu")), str((resources.limits or {}).get("cpu"))


def test_a_limit_range_counts_from_the_next_pod_on(store: Store) -> None:
    assert cpu(store.create(pod("before"))) == ("None", "None")
    created_limit_range = store.create(limit_range(default={"cpu": "1"}))
    assert cpu(store.create(pod("a"))) == ("1", "1")
    assert isinstance(created_limit_range, LimitRange)
    (item,) = created_limit_range.spec.limits
    store.update(
        created_limit_range.replace(
            spec=created_limit_range.spec.replace(limits=[item.replace(default=None)])
        )
    )
    assert cpu(store.create(pod("b"))) == ("1", "None")
    store.delete(LimitRange.resource, "default/sizes")


def test_one_that_another_process_made_counts_a_moment_later(io: RedisIO, store: Store) -> None:
    clock = FakeClock()
    mine = Store(io, clock)
    mine.create(pod("before"))
    store.create(limit_range(max={"cpu": "1"}))
    clock.step(1.1)
    with pytest.raises(errors.Forbidden) as refused:
        mine.create(pod("a", containers=[container(resources={"limits": {"cpu": "2"}})]))
    assert str(refused.value) == (
        'pods "a" is forbidden: maximum cpu usage per Container is 1, but limit is 2'
    )
    store.delete(LimitRange.resource, "default/sizes")
    clock.step(1.1)
    assert cpu(mine.create(pod("b"))) == ("None", "None")


def test_limits_that_a_pod_names_count_as_requests_before_any_default(store: Store) -> None:
    store.create(limit_range(default={"cpu": "4"}, defaultRequest={"cpu": "3"}))
    created_pod = store.create(pod("a", containers=[container(resources={"limits": {"cpu": "2"}})]))
    assert cpu(created_pod) == ("2", "2")


def test_a_pod_gets_the_overhead_and_the_nodes_of_its_runtime_class(store: Store) -> None:
    with pytest.raises(errors.Forbidden, match='RuntimeClass "gvisor" not found'):
        store.create(pod("a", runtime_class_name="gvisor"))
    overhead = {"podFixed": {"cpu": "250m"}}
    scheduling = {"nodeSelector": {"sandbox": "yes"}}
    body = {"metadata": {"name": "gvisor"}, "handler": "runsc"}
    store.create(decode_as(RuntimeClass, {**body, "overhead": overhead, "scheduling": scheduling}))
    spec = store.create(pod("a", runtime_class_name="gvisor")).spec
    assert spec.node_selector == {"sandbox": "yes"}
    assert {name: str(amount) for name, amount in (spec.overhead or {}).items()} == {"cpu": "250m"}


def test_an_ingress_gets_the_default_class(store: Store) -> None:
    rule = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
    plain = {"metadata": {"name": "a", "namespace": "default"}, "spec": rule}
    before = store.create(decode_as(Ingress, plain))
    assert before.spec.ingress_class_name is None
    marked = {"name": "nginx", "annotations": {IS_DEFAULT: "true"}}
    spec = {"controller": "example.com/nginx"}
    store.create(decode_as(IngressClass, {"metadata": marked, "spec": spec}))
    plain["metadata"] = {"name": "b", "namespace": "default"}
    assert store.create(decode_as(Ingress, plain)).spec.ingress_class_name == "nginx"
