"""Charging of quotas.

Cases after upstream's plugin/pkg/admission/resourcequota/admission_test.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import ResourceQuota
from kcm.api.scheme import BUILT_IN
from kcm.kinds.quota import Excess, charged, evaluator_of
from kcm.testing.views import NOW
from tests.samples import sample, with_spec
from tests.unit.kinds.quota.test_pods import pod_of

Amounts = dict[str, str]


def quota(hard: Amounts, used: Amounts | None = None, **spec: Any) -> ResourceQuota:
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") if used is None else used}
    new_quota: ResourceQuota = sample(
        "resourcequotas", spec={"hard": hard, **spec}, status=status
    ).with_metadata(name="quota")
    return new_quota


def charge_quotas(quotas: list[ResourceQuota], obj: Any, old: Any = None) -> list[Amounts]:
    charged_quotas = charged(quotas, evaluator_of(obj.resource), obj, old, NOW)
    return [{n: str(a) for n, a in (one.status.used or {}).items()} for one in charged_quotas]


CPU = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}


def test_what_is_limited_is_charged_and_nothing_else() -> None:
    new_quota = quota({"pods": "2", "requests.cpu": "3", "services": "1"})
    assert charge_quotas([new_quota], pod_of(CPU)) == [
        {"pods": "1", "requests.cpu": "1", "services": "0"}
    ]


def test_a_quota_that_says_nothing_of_the_kind_stays_the_same_object() -> None:
    new_quota = quota({"services": "1"})
    evaluator = evaluator_of(BUILT_IN.lookup("pods"))
    assert charged([new_quota], evaluator, pod_of({}), None, NOW)[0] is new_quota


@pytest.mark.parametrize(
    ("hard", "before", "pod", "expected"),
    [
        pytest.param(
            {"pods": "1", "requests.cpu": "2"},
            {"pods": "1", "requests.cpu": "1500m"},
            pod_of(CPU),
            "exceeded quota: quota, requested: pods=1,requests.cpu=1, "
            "used: pods=1,requests.cpu=1500m, limited: pods=1,requests.cpu=2",
            id="too much of several",
        ),
        pytest.param(
            {"pods": "9", "limits.cpu": "2"},
            {"pods": "1", "limits.cpu": "2"},
            pod_of(CPU),
            "exceeded quota: quota, requested: limits.cpu=1, used: limits.cpu=2, "
            "limited: limits.cpu=2",
            id="too much of one",
        ),
        pytest.param(
            {"limits.cpu": "2", "limits.memory": "1Gi"},
            None,
            pod_of(CPU, {}),
            "failed quota: quota: must specify limits.cpu for: c1; limits.memory for: c0,c1",
            id="nothing named",
        ),
        pytest.param(
            {"pods": "2", "requests.cpu": "2"},
            {"pods": "0"},
            pod_of(CPU),
            "status unknown for quota: quota, resources: pods,requests.cpu",
            id="not counted yet",
        ),
    ],
)
def test_refusals(hard: Amounts, before: Amounts | None, pod: Any, expected: str) -> None:
    with pytest.raises(Excess) as refused:
        charge_quotas([quota(hard, before)], pod)
    assert str(refused.value) == expected


def test_only_objects_in_all_scopes_are_charged() -> None:
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In",
                                      "values": ["high"]}]}  # fmt: skip
    new_quota = quota({"pods": "0"}, scopes=["BestEffort"], scopeSelector=selector)
    assert charge_quotas([new_quota], pod_of({})) == [{"pods": "0"}]
    assert charge_quotas([new_quota], pod_of(CPU, priorityClassName="high")) == [{"pods": "0"}]
    with pytest.raises(Excess):
        charge_quotas([new_quota], pod_of({}, priorityClassName="high"))


def test_a_quota_with_scopes_says_nothing_of_other_kinds() -> None:
    new_quota = quota({"pods": "5", "count/configmaps": "0"}, scopes=["NotTerminating"])
    assert charge_quotas([new_quota], sample("configmaps")) == [
        {"pods": "0", "count/configmaps": "0"}
    ]


def test_an_update_is_charged_what_it_takes_more() -> None:
    new_quota = quota({"requests.storage": "3Gi"}, {"requests.storage": "1Gi"})
    old = sample("persistentvolumeclaims")
    larger = with_spec("persistentvolumeclaims", resources={"requests": {"storage": "3Gi"}})
    assert charge_quotas([new_quota], larger, old) == [{"requests.storage": "3Gi"}]
    assert charge_quotas([new_quota], old, larger) == [{"requests.storage": "1Gi"}]
    with pytest.raises(Excess, match=r"requested: requests\.storage=3Gi"):
        charge_quotas([new_quota], larger)
