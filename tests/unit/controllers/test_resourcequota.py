"""Tests the usage that quotas' statuses show. The cases follow upstream's
pkg/controller/resourcequota/resource_quota_controller_test.go.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import ConfigMap, Pod, ResourceQuota
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.resourcequota import (
    RECOUNT,
    ResourceQuotaController,
    ResourceQuotaOptions,
    find_changed_quota,
    quotas_of_lower_usage,
)
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Failure, Outcome, Patch, Plan
from kcm.testing.builders import node, object_meta, service
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World
from tests.samples import sample, with_spec
from tests.unit.kinds.quota.test_pods import CPU, pod_of

CONTROLLER = ResourceQuotaController()
KEY = "default/few"
BAD = errors.BadRequest("bad")
Amounts = dict[str, str]


def quota(hard: Amounts, status: dict[str, Amounts] | None = None, **spec: Any) -> ResourceQuota:
    new_quota: ResourceQuota = sample(
        "resourcequotas", spec={"hard": hard, **spec}, status=status or {}
    )
    return new_quota.with_metadata(**_metadata("ResourceQuota", "few"))


def _metadata(kind: str, name: str) -> dict[str, Any]:
    meta = object_meta(kind, name, "default")
    return {"name": name, "uid": meta.uid, "resource_version": meta.resource_version}


def a_pod(name: str, phase: str = "Running", **spec: Any) -> Pod:
    pod = pod_of(CPU, **spec).with_metadata(**_metadata("Pod", name))
    return pod.with_status(pod.status.replace(phase=phase))


def config_map(name: str) -> ConfigMap:
    new_config_map: ConfigMap = sample("configmaps")
    return new_config_map.with_metadata(**_metadata("ConfigMap", name))


def count(quota: ResourceQuota, *objects: KubeObject) -> dict[str, Amounts]:
    world = World(quota, *objects)
    world.carry_out(CONTROLLER.reconcile(KEY, world.view()))
    (stored,) = world.of(ResourceQuota)
    assert isinstance(stored, ResourceQuota)
    status = stored.status
    return {
        "hard": {name: str(amount) for name, amount in (status.hard or {}).items()},
        "used": {name: str(amount) for name, amount in (status.used or {}).items()},
    }


@pytest.mark.parametrize(
    ("hard", "spec", "objects", "used"),
    [
        pytest.param({"pods": "5", "services": "1"}, {}, (), {"pods": "0", "services": "0"},
                     id="nothing there"),
        pytest.param(
            {"pods": "5", "requests.cpu": "5", "count/pods": "9"},
            {},
            (a_pod("a"), a_pod("b"), a_pod("c", "Succeeded"), a_pod("d", "Failed")),
            {"pods": "2", "requests.cpu": "2", "count/pods": "4"},
            id="pods that ended count as objects only",
        ),
        pytest.param(
            {"pods": "5"},
            {"scopes": ["Terminating"]},
            (a_pod("a"), a_pod("b", activeDeadlineSeconds=9)),
            {"pods": "1"},
            id="in scope",
        ),
        pytest.param(
            {"configmaps": "5", "services": "2", "services.nodeports": "3"},
            {},
            (config_map("a"), config_map("b"), service("web")),
            {"configmaps": "2", "services": "1", "services.nodeports": "0"},
            id="of every kind",
        ),
        pytest.param(
            {"pods": "1"}, {}, (a_pod("a").with_metadata(namespace="other"),), {"pods": "0"},
            id="of this namespace only",
        ),
        pytest.param({"count/gadgets.example.com": "1"}, {}, (), {}, id="of no kind that there is"),
    ],
)  # fmt: skip
def test_what_there_is(
    hard: Amounts, spec: dict[str, Any], objects: tuple[KubeObject, ...], used: Amounts
) -> None:
    assert count(quota(hard, **spec), *objects) == {"hard": hard, "used": used}


def test_what_is_limited_no_longer_leaves_the_status() -> None:
    before = {"hard": {"pods": "5", "secrets": "1"}, "used": {"pods": "9", "secrets": "1"}}
    assert count(quota({"pods": "4"}, before)) == {"hard": {"pods": "4"}, "used": {"pods": "0"}}


def test_a_status_that_is_right_is_not_written() -> None:
    new_quota = quota({"pods": "5"}, {"hard": {"pods": "5"}, "used": {"pods": "1"}})
    assert CONTROLLER.reconcile(KEY, FakeView(new_quota, a_pod("a"))).writes == []
    assert CONTROLLER.reconcile("default/gone", FakeView(new_quota)).writes == []


def test_a_count_depends_on_what_it_saw() -> None:
    view = FakeView(quota({"pods": "5", "configmaps": "1"}), position=77)
    (write,) = CONTROLLER.reconcile(KEY, view).writes
    assert [str(guard) for guard in write.guards] == ["counted default pods 77 configmaps 77"]


@pytest.mark.parametrize(
    ("api_errors", "again"),
    [
        ([], Plan()),
        ([errors.GuardFailed()], Plan(requeue_after=RECOUNT)),
        ([errors.GuardFailed(), BAD], Plan(error=BAD)),
    ],
)
def test_a_count_that_missed_something_is_made_again_and_is_no_failure(
    api_errors: list[errors.ApiError], again: Plan
) -> None:
    plan = CONTROLLER.reconcile(KEY, FakeView(quota({"pods": "5"})))
    (batch,) = plan.batches
    assert batch.optional
    assert plan.plan_after is not None
    failures = [Failure(batch.writes[0], error, optional=True) for error in api_errors]
    assert plan.plan_after(Outcome(failures=failures)) == again


def test_a_count_for_limits_that_changed_meanwhile_is_not_written() -> None:
    (write,) = CONTROLLER.reconcile(KEY, FakeView(quota({"pods": "5"}))).writes
    assert isinstance(write, Patch)
    newer = quota({"pods": "6"})
    assert write.change(newer) is newer


def test_all_quotas_are_counted_once_in_a_while() -> None:
    controller = ResourceQuotaController(
        ResourceQuotaOptions(resource_quota_sync_period=timedelta(minutes=2))
    )
    (tick,) = controller.ticks()
    assert tick.every == 120
    right = quota({"pods": "5"}, {"hard": {"pods": "5"}, "used": {"pods": "0"}})
    wrong = quota({"pods": "5"}).with_metadata(name="wrong", uid="wrong")
    plan = controller.count_all(FakeView(right, wrong), {})
    assert [write.old.name for write in plan.writes if isinstance(write, Patch)] == ["wrong"]


# --- which keys


def keys(old: KubeObject | None, new: KubeObject | None, *quotas: ResourceQuota) -> list[str]:
    return list(quotas_of_lower_usage(Change(old, new), FakeView(*quotas)))


PODS = quota({"pods": "5", "requests.cpu": "5"})
DYING = {"deletion_timestamp": NOW, "deletion_grace_period_seconds": 30}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, a_pod("a"), [], id="created: charged already"),
        pytest.param(a_pod("a"), None, [KEY], id="deleted"),
        pytest.param(a_pod("a"), a_pod("a").with_metadata(uid="x"), [KEY], id="replaced"),
        pytest.param(a_pod("a"), a_pod("a", "Failed"), [KEY], id="ended"),
        pytest.param(a_pod("a", "Pending"), a_pod("a"), [], id="started"),
        pytest.param(a_pod("a"), a_pod("a").with_metadata(**DYING), [], id="about to go"),
        pytest.param(config_map("a"), None, [], id="of a kind that is not limited"),
        pytest.param(node("n"), None, [], id="without a namespace"),
    ],
)
def test_which_changes_are_looked_at(
    old: KubeObject | None, new: KubeObject | None, expected: list[str]
) -> None:
    assert keys(old, new, PODS) == expected
    assert keys(old, new) == []


def test_services_and_claims_that_take_another_amount_are_looked_at() -> None:
    ports = with_spec("services", type="NodePort")
    limited = quota({"services.nodeports": "1", "requests.storage": "1Gi"})
    assert keys(ports, sample("services"), limited) == [KEY]
    large = with_spec("persistentvolumeclaims", resources={"requests": {"storage": "3Gi"}})
    assert keys(large, sample("persistentvolumeclaims"), limited) == [KEY]
    assert keys(large, large.with_metadata(labels={"a": "b"}), limited) == []


def test_a_pod_that_leaves_or_enters_a_scope_is_looked_at() -> None:
    limited = quota({"pods": "5"}, scopes=["Terminating"])
    assert keys(a_pod("a"), a_pod("a", activeDeadlineSeconds=5), limited) == [KEY]


def test_a_quota_is_looked_at_when_it_is_new_or_limits_something_else() -> None:
    status = {"hard": {"pods": "5"}, "used": {"pods": "1"}}
    old, counted_, other = quota({"pods": "5"}), quota({"pods": "5"}, status), quota({"pods": "6"})
    view = FakeView()
    assert list(find_changed_quota(Change(None, old), view)) == [KEY]
    assert list(find_changed_quota(Change(old, counted_), view)) == []
    assert list(find_changed_quota(Change(old, other), view)) == [KEY]
    assert list(find_changed_quota(Change(old, None), view)) == []
